//! The three ways to publish: a call a message, a call a batch, one stream.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use prost::Message;

use super::source::{Sent, Source};
use crate::client::{BatchConfirmed, CallError, Confirmed, Connection, Receiver, rpc};
use crate::clock;
use crate::failure::{Doing, Failure};
use crate::proto::PublishConfirm;

/// Most bytes that a stream hands to HTTP/2 at a time.
const CHUNK: usize = 64 * 1024;

/// How a publisher sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publishing {
    /// One Publish call a message.
    Unary,
    /// One PublishStream for all.
    Stream,
    /// One PublishBatch call for so many messages, or for fewer where no more are due.
    Batch(usize),
}

impl Publishing {
    /// Whether the broker promises to keep the order of what is sent this way.
    pub fn keeps_order(self, outstanding: usize) -> bool {
        match self {
            Publishing::Stream => true,
            Publishing::Unary => outstanding <= 1,
            Publishing::Batch(size) => outstanding <= size,
        }
    }
}

impl fmt::Display for Publishing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Publishing::Unary => f.write_str("unary"),
            Publishing::Stream => f.write_str("stream"),
            Publishing::Batch(size) => write!(f, "batches of {size}"),
        }
    }
}

impl FromStr for Publishing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "unary" => Ok(Publishing::Unary),
            None if text == "stream" => Ok(Publishing::Stream),
            None if text == "batch" => Ok(Publishing::Batch(64)),
            Some(("batch", size)) => match size.parse() {
                Ok(size) if size > 0 => Ok(Publishing::Batch(size)),
                _ => Err(format!("`{size}` is no size of a batch")),
            },
            _ => Err("say unary, stream, batch or batch=SIZE".into()),
        }
    }
}

/// Sends until the source is over and everything is answered.
pub async fn publish(
    connection: &Connection,
    source: &Source,
    publishing: Publishing,
    outstanding: usize,
) -> Result<(), Failure> {
    match publishing {
        Publishing::Unary => calls(connection, source, None, outstanding).await,
        Publishing::Batch(size) => calls(connection, source, Some(size), outstanding / size).await,
        Publishing::Stream => stream(connection, source, outstanding).await,
    }
}

/// Unary calls, each with a message, or with a batch of at most so many.
async fn calls(
    connection: &Connection,
    source: &Source,
    batch: Option<usize>,
    most: usize,
) -> Result<(), Failure> {
    let most = most.max(1);
    let mut calls = FuturesUnordered::new();
    loop {
        let now = clock::now();
        while calls.len() < most {
            let sent: Vec<Sent> = std::iter::from_fn(|| source.next(now)).take(batch.unwrap_or(1)).collect();
            if sent.is_empty() {
                break;
            }
            calls.push(call(connection, source, sent, batch.is_some()));
        }
        let is_over = source.is_over(now);
        if is_over && calls.is_empty() {
            return Ok(());
        }
        let may_send = !is_over && calls.len() < most;
        tokio::select! {
            Some(answered) = calls.next() => answered?,
            ready = source.wait(), if may_send => ready?,
        }
    }
}

async fn call(
    connection: &Connection,
    source: &Source,
    sent: Vec<Sent>,
    is_batch: bool,
) -> Result<(), Failure> {
    let rpc = if is_batch { rpc::PUBLISH_BATCH } else { rpc::PUBLISH };
    match connection.unary_framed(rpc, request(source, &sent, is_batch)).await {
        Err(error) => source.failed(&sent, error),
        Ok(answer) if is_batch => settle_batch(source, &sent, answer).doing("reading a batch's confirm"),
        Ok(answer) => settle_one(source, &sent, answer).doing("reading a confirm"),
    }
}

fn request(source: &Source, sent: &[Sent], is_batch: bool) -> Bytes {
    let mut out = BytesMut::new();
    if is_batch {
        out.put_bytes(0, 5);
        for sent in sent {
            source.template(sent).element(sent.stamp, &mut out);
        }
        let length = (out.len() - 5) as u32;
        out[1..5].copy_from_slice(&length.to_be_bytes());
    } else {
        for sent in sent {
            source.template(sent).frame(sent.stamp, &mut out);
        }
    }
    out.freeze()
}

fn settle_one(source: &Source, sent: &[Sent], answer: Bytes) -> Result<(), CallError> {
    let confirmed = Confirmed::decode(answer)?;
    sent.iter().for_each(|sent| source.confirmed(sent, Some(confirmed.subscriptions)));
    Ok(())
}

fn settle_batch(source: &Source, sent: &[Sent], answer: Bytes) -> Result<(), CallError> {
    let BatchConfirmed { results, failures } = BatchConfirmed::decode(answer)?;
    if results.len() != sent.len() {
        let (results, sent) = (results.len(), sent.len());
        return Err(CallError::Protocol(format!("{results} results for a batch of {sent}")));
    }
    let mut failures = failures.into_iter().peekable();
    for (index, (sent, result)) in (0..).zip(sent.iter().zip(results)) {
        match failures.next_if(|failure| failure.index == index) {
            Some(failure) => source.refused(sent, &failure.message),
            None => source.confirmed(sent, Some(result.subscriptions)),
        }
    }
    Ok(())
}

async fn stream(connection: &Connection, source: &Source, outstanding: usize) -> Result<(), Failure> {
    let (mut sender, receiver) =
        connection.call(rpc::PUBLISH_STREAM).await.doing("beginning a stream of publishes")?;
    let mut confirms = Confirms { receiver, pending: VecDeque::new(), settled: 0 };
    let mut is_finished = false;
    loop {
        let now = clock::now();
        let mut out = BytesMut::new();
        while confirms.pending.len() < outstanding && out.len() < CHUNK {
            let Some(sent) = source.next(now) else { break };
            source.template(&sent).frame(sent.stamp, &mut out);
            confirms.pending.push_back(sent);
        }
        if !out.is_empty() {
            sender.send_in_window(out.freeze()).await.doing("publishing in a stream")?;
            // Lets the connection write.
            tokio::task::yield_now().await;
        }
        if !is_finished && source.is_over(now) {
            is_finished = true;
            sender.finish().doing("ending a stream of publishes")?;
        }
        let may_send = !is_finished && confirms.pending.len() < outstanding;
        tokio::select! {
            going_on = confirms.take(source) => {
                match going_on.doing("a stream of publishes")? {
                    true => {}
                    false if is_finished && confirms.pending.is_empty() => return Ok(()),
                    false => return Err(CallError::Protocol("ended before all was confirmed".into())).doing("a stream of publishes"),
                }
            }
            ready = source.wait(), if may_send => ready?,
        }
    }
}

/// What a stream of publishes waits for.
struct Confirms {
    receiver: Receiver,
    /// Sent and not yet settled, in the order of the stream.
    pending: VecDeque<Sent>,
    /// Requests settled since the start of the stream.
    settled: u64,
}

impl Confirms {
    /// Waits for confirms and books them; false at the good end of the stream. May be dropped half way.
    async fn take(&mut self, source: &Source) -> Result<bool, CallError> {
        if !self.receiver.more().await? {
            return Ok(false);
        }
        while let Some(bytes) = self.receiver.next_ready()? {
            self.settle(source, PublishConfirm::decode(bytes)?)?;
        }
        Ok(true)
    }

    fn settle(&mut self, source: &Source, confirm: PublishConfirm) -> Result<(), CallError> {
        let mut failures = confirm.failures.into_iter().peekable();
        // Which of those settled went unheard is not said: the first ones are taken for it.
        let mut unheard = confirm.unheard;
        while self.settled < confirm.confirmed {
            let too_many = || CallError::Protocol("more confirms than requests".into());
            let sent = self.pending.pop_front().ok_or_else(too_many)?;
            match failures.next_if(|failure| failure.index == self.settled) {
                Some(failure) => source.refused(&sent, &failure.message),
                None if unheard > 0 => {
                    unheard -= 1;
                    source.confirmed(&sent, Some(0));
                }
                None => source.confirmed(&sent, None),
            }
            self.settled += 1;
        }
        Ok(())
    }
}
