use std::str::FromStr;

use clap::ValueEnum;
use clap::builder::NonEmptyStringValueParser;
use http::uri::Authority;

/// Most messages a second that `--rate` takes.
const MAX_RATE: f64 = 1_000_000.0;

/// Options of `tinybroker pub`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "One message after the other, each confirmed before the next, so that their order is kept.\n\n\
    Examples:\n  \
    tinybroker pub jobs.hello 'my first job'\n  \
    tinybroker pub order.placed - --header kind=json <order.json\n  \
    tinybroker pub 'jobs.thumb.{\x1b[0mn}' 'picture {\x1b[0mn}' --count 1000 --rate 50"
)]
pub struct PubOptions {
    /// Topic to publish to.
    pub topic: String,

    /// Payload; `-` reads standard input to its end and sends those bytes as they are.
    #[arg(default_value = "", allow_negative_numbers = true)]
    pub payload: String,

    /// Header of the message; may be given several times.
    #[arg(long = "header", value_name = "KEY=VALUE")]
    pub headers: Vec<Header>,

    /// The publisher's own id of the message [default: the broker makes one].
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub message_id: String,

    // clap makes a line break of `{n}`; with an empty style inside it stays, and is seen without.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..),
        help = "Publish so many messages. `{\x1b[0mn}` in topic, payload and message id becomes 1, 2, 3, …")]
    pub count: u64,

    /// Messages a second. What is late is sent as soon as possible, and the schedule stays
    /// [default: as fast as they are confirmed].
    #[arg(long, value_name = "R", value_parser = parse_rate)]
    pub rate: Option<f64>,

    #[command(flatten)]
    pub connection: ConnectionOptions,
}

/// Options of `tinybroker sub`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Messages go to standard output, one a line: topic, tab, payload. What else happens is said on \
    standard error (with --json: an object with `event`, among the messages).\n\
    SIGINT or SIGTERM ends with all acks carried out.\n\n\
    Examples:\n  \
    tinybroker sub 'order.*' 'payment.*'\n  \
    tinybroker sub 'jobs.*' --group workers --max-in-flight 10\n  \
    tinybroker sub 'schedule.*' --group scheduler --singleton\n  \
    tinybroker sub '*' --json --count 1 | jq .payload"
)]
pub struct SubOptions {
    /// Patterns of topics, for example 'order.*'. Quote them, or the shell expands them.
    #[arg(required = true, value_name = "PATTERN")]
    pub patterns: Vec<String>,

    /// Consumer group: its members share the messages. Without one, every message comes here.
    #[arg(long, value_name = "G", env = "TINYBROKER_GROUP", value_parser = NonEmptyStringValueParser::new())]
    pub group: Option<String>,

    /// Only one member of the group is active, the others stand by.
    #[arg(long, env = "TINYBROKER_SINGLETON", requires_if("true", "group"))]
    pub singleton: bool,

    /// `auto` acks each message once it is printed. `none` acks nothing: in a group, or with
    /// --max-in-flight, it takes as many messages as may be in flight and holds them until it
    /// ends; then they go to others.
    #[arg(long, value_enum, env = "TINYBROKER_ACK", default_value_t = AckMode::Auto)]
    pub ack: AckMode,

    /// Messages that may be un-acked here at once; 0: one in a group, and no acks without.
    #[arg(long, value_name = "N", env = "TINYBROKER_MAX_IN_FLIGHT", default_value_t = 0)]
    pub max_in_flight: u32,

    /// Print one JSON object a line, for messages and events.
    #[arg(long, env = "TINYBROKER_JSON")]
    pub json: bool,

    /// End after so many messages [default: go on].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// End with an error when the broker goes away, instead of trying to reach it again.
    #[arg(long, env = "TINYBROKER_NO_RECONNECT")]
    pub no_reconnect: bool,

    #[command(flatten)]
    pub connection: ConnectionOptions,
}

impl SubOptions {
    /// How many messages may be un-acked here; none where no acks are asked.
    pub fn in_flight(&self) -> Option<u32> {
        match self.max_in_flight {
            0 => self.group.as_ref().map(|_| 1),
            given => Some(given),
        }
    }
}

/// How a client reaches the broker.
#[derive(Debug, clap::Args)]
pub struct ConnectionOptions {
    /// Broker to talk to, HOST:PORT.
    #[arg(long, value_name = "ADDR", env = "TINYBROKER_BROKER", default_value = "127.0.0.1:50051",
        value_parser = parse_address)]
    pub broker: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AckMode {
    Auto,
    None,
}

/// One header of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub key: String,
    pub value: String,
}

impl FromStr for Header {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Header { key: key.into(), value: value.into() }),
            _ => Err("give KEY=VALUE, for example kind=json".into()),
        }
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= MAX_RATE => Ok(rate),
        _ => Err(format!("give messages a second: a number above 0, at most {MAX_RATE}")),
    }
}

fn parse_address(text: &str) -> Result<String, String> {
    let address = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
    match address.parse::<Authority>() {
        Ok(parts) if parts.port_u16().is_some() && !parts.host().is_empty() => Ok(address.into()),
        _ => Err("give HOST:PORT, for example 127.0.0.1:50051 or [::1]:50051".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let header = |key: &str, value: &str| Ok(Header { key: key.into(), value: value.into() });
        assert_eq!("kind=json".parse(), header("kind", "json"));
        assert_eq!("query=a=b".parse(), header("query", "a=b"));
        assert_eq!("empty=".parse(), header("empty", ""));
        assert!("kind".parse::<Header>().is_err());
        assert!("=json".parse::<Header>().is_err());
    }

    #[test]
    fn rates() {
        assert_eq!(parse_rate("0.5"), Ok(0.5));
        for bad in ["0", "-1", "NaN", "inf", "1e7", "fast"] {
            assert!(parse_rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(parse_address("localhost:50051"), Ok("localhost:50051".into()));
        assert_eq!(parse_address("http://10.0.0.1:50051/"), Ok("10.0.0.1:50051".into()));
        assert_eq!(parse_address("[::1]:50051"), Ok("[::1]:50051".into()));
        for bad in ["", "localhost", ":50051", "::1:50051", "https://localhost:50051", "localhost:99999"] {
            assert!(parse_address(bad).is_err(), "{bad}");
        }
    }
}
