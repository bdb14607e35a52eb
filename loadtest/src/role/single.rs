//! One publish by itself, for roles that have no row of messages to send.

use bytes::BytesMut;
use prost::Message;

use crate::client::{CallError, Confirmed, Connection, rpc};
use crate::clock::Nanos;
use crate::crew::Station;
use crate::failure::{Doing, Failure};
use crate::ledger::LaneId;
use crate::payload::{Stamp, Template};

/// Publishes the next message of a lane by a unary call, and enters what the broker answers.
pub async fn publish_one(
    connection: &Connection,
    station: &Station,
    lane: LaneId,
    template: &Template,
    intended: Nanos,
) -> Result<(), Failure> {
    let trial = &station.trial;
    let sequence = trial.ledger.sent(lane, 1);
    let mut request = BytesMut::new();
    template.frame(Stamp { run: trial.run, lane, sequence, intended }, &mut request);
    match connection.unary_framed(rpc::PUBLISH, request.freeze()).await {
        Ok(answer) => {
            let confirmed = Confirmed::decode(answer).map_err(CallError::from).doing("reading a confirm")?;
            trial.ledger.confirmed(lane, sequence, confirmed.subscriptions);
        }
        Err(error) if error.is_refusal() => {
            trial.ledger.refused(lane, sequence);
            trial.note(format!("publishes were refused: {error}"));
        }
        Err(error) => {
            trial.ledger.unknown(lane, sequence);
            return Err(error).doing("publishing");
        }
    }
    Ok(())
}
