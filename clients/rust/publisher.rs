//! Publishes payloads to a topic: each after the last was confirmed, or in a stream, or as a batch.
//!
//! ```sh
//! cargo run --example publisher -- jobs.thumb.1 a.png b.png --header tenant=acme
//! cargo run --example publisher -- jobs.thumb.1 a.png b.png --by stream
//! ```
//!
//! Prints what the broker answered, one JSON object a line.

use std::collections::HashMap;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde_json::{Value, json};
// In a program of your own: what tonic-prost-build makes of the .proto files.
use tinybroker::proto::broker_client::BrokerClient;
use tinybroker::proto::{PublishBatchRequest, PublishFailure, PublishRequest, PublishResponse};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

#[derive(Parser)]
struct Options {
    #[arg(long, env = "TINYBROKER_BROKER", default_value = "127.0.0.1:50051")]
    broker: String,
    #[arg(long, value_enum, default_value = "call")]
    by: By,
    /// Your own id of the message.
    #[arg(long, default_value = "")]
    message_id: String,
    #[arg(long = "header", value_name = "KEY=VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    topic: String,
    #[arg(required = true)]
    payloads: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Call,
    Stream,
    Batch,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match publish(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn publish(options: Options) -> Result<(), Box<dyn Error>> {
    let channel = Endpoint::from_shared(format!("http://{}", options.broker))?
        // A deadline on every call: without one a call may wait for ever.
        .timeout(Duration::from_secs(10))
        .connect()
        .await?;
    let client = BrokerClient::new(channel);
    let headers: HashMap<_, _> = options.headers.into_iter().collect();
    let requests = options.payloads.into_iter().map(|payload| PublishRequest {
        topic: options.topic.clone(),
        payload: payload.into(),
        message_id: options.message_id.clone(),
        headers: headers.clone(),
    });
    let requests = requests.collect();
    let done = match options.by {
        By::Call => publish_by_call(client, requests).await,
        By::Stream => publish_by_stream(client, requests).await,
        By::Batch => publish_by_batch(client, requests).await,
    };
    done.map_err(|status| format!("{:?}: {}", status.code(), status.message()).into())
}

async fn publish_by_call(
    mut client: BrokerClient<Channel>,
    requests: Vec<PublishRequest>,
) -> Result<(), Status> {
    for request in requests {
        let answer = client.publish(request).await?.into_inner();
        println!("{}", published(answer));
    }
    Ok(())
}

async fn publish_by_stream(
    mut client: BrokerClient<Channel>,
    requests: Vec<PublishRequest>,
) -> Result<(), Status> {
    let mut confirms = client.publish_stream(tokio_stream::iter(requests)).await?.into_inner();
    while let Some(confirm) = confirms.message().await? {
        let failures: Vec<_> = confirm.failures.into_iter().map(failed).collect();
        // `confirmed` counts from the start of the stream, those that failed included.
        println!(
            "{}",
            json!({ "confirmed": confirm.confirmed, "failures": failures, "unheard": confirm.unheard })
        );
    }
    Ok(())
}

async fn publish_by_batch(
    mut client: BrokerClient<Channel>,
    messages: Vec<PublishRequest>,
) -> Result<(), Status> {
    let answer = client.publish_batch(PublishBatchRequest { messages }).await?.into_inner();
    let mut failures: HashMap<_, _> =
        answer.failures.into_iter().map(|failure| (failure.index, failure)).collect();
    for (index, result) in (0..).zip(answer.results) {
        println!("{}", failures.remove(&index).map_or_else(|| published(result), failed));
    }
    Ok(())
}

fn published(answer: PublishResponse) -> Value {
    // `subscriptions` is 0 where nobody was listening: then the message is gone.
    json!({
        "system_id": answer.system_id,
        "message_id": answer.message_id,
        "subscriptions": answer.subscriptions,
    })
}

fn failed(failure: PublishFailure) -> Value {
    json!({ "index": failure.index, "code": failure.code, "message": failure.message })
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
    Ok((key.into(), value.into()))
}
