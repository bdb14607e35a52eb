//! One table: failure → code, name in metrics, details.

use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::Failure;
use crate::core::{EndReason, OpenRefusal, PublishRefusal};
use crate::limits;

/// What a client whose publish met a full subscription should wait before it tries again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl Failure {
    /// Code and name of the failure.
    pub fn kind(&self) -> (Code, &'static str) {
        match self {
            Failure::Invalid { .. } => (Code::InvalidArgument, "invalid_argument"),
            Failure::TooLarge { .. } => (Code::ResourceExhausted, "message_too_large"),
            Failure::Publish(PublishRefusal::Messages { .. }) => {
                (Code::ResourceExhausted, "subscription_full")
            }
            Failure::Publish(PublishRefusal::Bytes { .. }) => {
                (Code::ResourceExhausted, "subscription_full_bytes")
            }
            Failure::Open(OpenRefusal::Differs { .. }) => (Code::FailedPrecondition, "group_differs"),
            Failure::Open(OpenRefusal::IdInUse { .. }) => (Code::AlreadyExists, "id_in_use"),
            Failure::Open(OpenRefusal::Index(_)) => (Code::ResourceExhausted, "too_many_patterns"),
            Failure::End(EndReason::Overflow { .. } | EndReason::OverflowBytes { .. }) => {
                (Code::ResourceExhausted, "fell_behind")
            }
            Failure::End(EndReason::OtherSubscription) => (Code::InvalidArgument, "other_subscription"),
            Failure::End(EndReason::ResignOutsideSingleton { .. }) => {
                (Code::InvalidArgument, "resign_outside_singleton")
            }
            Failure::NoSubscription => (Code::NotFound, "no_subscription"),
            Failure::NotInFlight => (Code::NotFound, "not_in_flight"),
            Failure::TooManySubscriptions { .. } => (Code::ResourceExhausted, "too_many_subscriptions"),
            Failure::OpenTimeout => (Code::DeadlineExceeded, "open_timeout"),
            Failure::Deadline => (Code::DeadlineExceeded, "deadline"),
            Failure::ShuttingDown => (Code::Unavailable, "shutting_down"),
            Failure::NotServed { .. } => (Code::Unimplemented, "not_served"),
            Failure::Internal => (Code::Internal, "internal"),
            Failure::Transport { code, .. } => (Code::from_i32(*code), "unreadable"),
        }
    }

    fn details(&self) -> ErrorDetails {
        match self {
            Failure::Invalid { field, reason } => ErrorDetails::with_bad_request_violation(*field, reason),
            Failure::End(EndReason::OtherSubscription) => {
                ErrorDetails::with_bad_request_violation("subscription_id", self.to_string())
            }
            Failure::End(EndReason::ResignOutsideSingleton { .. }) => {
                ErrorDetails::with_bad_request_violation("resign", self.to_string())
            }
            Failure::Publish(_) => ErrorDetails::with_retry_info(Some(RETRY_AFTER)),
            _ => ErrorDetails::new(),
        }
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        let (code, _) = failure.kind();
        let mut text = failure.to_string();
        truncate(&mut text, limits::ERROR_TEXT_BYTES);
        Status::with_error_details(code, text, failure.details())
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        // The transport calls a request over its limit OUT_OF_RANGE; this contract has one code for
        // all that is too large.
        let code = match status.code() {
            Code::OutOfRange => Code::ResourceExhausted,
            code => code,
        };
        Failure::Transport { code: code as i32, text: status.message().to_owned() }
    }
}

/// Long texts break the trailers they travel in.
fn truncate(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
    }
}
