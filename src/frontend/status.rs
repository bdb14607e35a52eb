//! One table: failure → code and details.

use std::time::Duration;

use tonic::metadata::MetadataValue;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::Failure;
use crate::core::{EndReason, OpenRefusal};
use crate::limits;

/// What a client whose publish met a full subscription or broker should wait before it tries again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl Failure {
    pub fn code(&self) -> Code {
        match self {
            Failure::Invalid { .. }
            | Failure::End(EndReason::OtherSubscription | EndReason::ResignOutsideSingleton { .. }) => {
                Code::InvalidArgument
            }
            Failure::TooLarge { .. }
            | Failure::MemoryFull { .. }
            | Failure::Publish(_)
            | Failure::Open(OpenRefusal::Index(_))
            | Failure::End(EndReason::Overflow { .. } | EndReason::OverflowBytes { .. })
            | Failure::TooManySubscriptions { .. }
            | Failure::UnreadEvents { .. } => Code::ResourceExhausted,
            Failure::Open(OpenRefusal::Differs { .. }) => Code::FailedPrecondition,
            Failure::Open(OpenRefusal::IdInUse { .. }) => Code::AlreadyExists,
            Failure::NoSubscription | Failure::NotInFlight => Code::NotFound,
            Failure::OpenTimeout | Failure::Deadline => Code::DeadlineExceeded,
            Failure::ShuttingDown => Code::Unavailable,
            Failure::Internal | Failure::Framing { .. } => Code::Internal,
            Failure::Compressed { .. } => Code::Unimplemented,
        }
    }

    /// The text, short enough to be sent.
    pub fn short_text(&self) -> String {
        let mut text = self.to_string();
        truncate(&mut text, limits::ERROR_TEXT_BYTES);
        text
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
            Failure::Publish(_) | Failure::MemoryFull { .. } => {
                ErrorDetails::with_retry_info(Some(RETRY_AFTER))
            }
            _ => ErrorDetails::new(),
        }
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        let mut status = Status::with_error_details(failure.code(), failure.short_text(), failure.details());
        if let Failure::Compressed { .. } = failure {
            status.metadata_mut().insert("grpc-accept-encoding", MetadataValue::from_static("identity"));
        }
        status
    }
}

/// Long texts break the trailers they travel in.
fn truncate(text: &mut String, limit: usize) {
    if text.len() > limit {
        let end = (0..=limit).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text.truncate(end);
    }
}
