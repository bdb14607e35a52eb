//! Publishes payloads to a topic, each after the last was confirmed.
//!
//! ```sh
//! cargo run --example publisher -- jobs.thumb.1 a.png b.png --header tenant=acme
//! ```
//!
//! Prints what the broker answered, one JSON object a line.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use serde_json::json;
// In a program of your own: what tonic-prost-build makes of the .proto files.
use tinybroker::proto::PublishRequest;
use tinybroker::proto::broker_client::BrokerClient;
use tonic::transport::Endpoint;

#[derive(Parser)]
struct Options {
    #[arg(long, env = "TINYBROKER_BROKER", default_value = "127.0.0.1:50051")]
    broker: String,
    /// Your own id of the message.
    #[arg(long, default_value = "")]
    message_id: String,
    #[arg(long = "header", value_name = "KEY=VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    topic: String,
    #[arg(required = true)]
    payloads: Vec<String>,
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
    let mut client = BrokerClient::new(channel);
    for payload in options.payloads {
        let request = PublishRequest {
            topic: options.topic.clone(),
            payload: payload.into(),
            message_id: options.message_id.clone(),
            headers: options.headers.iter().cloned().collect(),
        };
        let answer = client.publish(request).await?.into_inner();
        // `subscriptions` is 0 where nobody was listening: then the message is gone.
        println!(
            "{}",
            json!({
                "system_id": answer.system_id,
                "message_id": answer.message_id,
                "subscriptions": answer.subscriptions,
            })
        );
    }
    Ok(())
}

fn parse_header(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("give KEY=VALUE")?;
    Ok((key.into(), value.into()))
}
