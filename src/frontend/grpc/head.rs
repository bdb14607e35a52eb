use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, header};

use crate::frontend::Failure;

/// Why a request is answered before its body is read.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is no gRPC at all.
    Foreign,
    Failed(Failure),
}

/// Whether a request is gRPC. Returns the timeout that its caller set.
pub fn check(request: &Parts) -> Result<Option<Duration>, Refusal> {
    if request.method != Method::POST || !is_grpc(&request.headers) {
        return Err(Refusal::Foreign);
    }
    timeout(&request.headers).map_err(Refusal::Failed)
}

/// Whether its messages can be read: they are not, if they are compressed.
pub fn check_encoding(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get("grpc-encoding").map(|value| value.as_bytes()) {
        None | Some(b"identity") => Ok(()),
        Some(other) => Err(Failure::Compressed { encoding: String::from_utf8_lossy(other).into_owned() }),
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let Some(value) = headers.get("grpc-timeout") else { return Ok(None) };
    let malformed =
        || Failure::invalid("grpc-timeout", "is malformed; give 1 to 8 digits and one of H M S m u n");
    let text = value.to_str().map_err(|_| malformed())?;
    let (digits, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(malformed)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed());
    }
    let count: u64 = digits.parse().map_err(|_| malformed())?;
    let timeout = match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return Err(malformed()),
    };
    Ok(Some(timeout))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Duration>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert("grpc-timeout", text.parse().expect("a header value"));
        timeout(&headers)
    }

    #[test]
    fn timeouts_have_a_number_and_a_unit() {
        assert_eq!(timeout(&HeaderMap::new()), Ok(None));
        assert_eq!(parse("1S"), Ok(Some(Duration::from_secs(1))));
        assert_eq!(parse("99999999H"), Ok(Some(Duration::from_secs(99_999_999 * 3600))));
        assert_eq!(parse("250m"), Ok(Some(Duration::from_millis(250))));
        for malformed in ["", "S", "1", "1 S", "-1S", "1x", "123456789S", "1.5S", "+1S"] {
            assert!(parse(malformed).is_err(), "{malformed:?}");
        }
    }
}
