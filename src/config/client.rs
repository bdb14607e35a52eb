use std::str::FromStr;

use clap::ValueEnum;

/// Options of `tinybroker pub`.
#[derive(Debug, clap::Args)]
pub struct PubOptions {
    /// Topic to publish to.
    pub topic: String,

    /// Payload; `-` reads standard input, once.
    #[arg(default_value = "")]
    pub payload: String,

    /// Header, KEY=VALUE; may be given several times.
    #[arg(long = "header", value_name = "K=V")]
    pub headers: Vec<Header>,

    /// The publisher's own id of the message.
    #[arg(long, value_name = "ID", default_value = "")]
    pub message_id: String,

    /// Publish the message so many times. `{n}` in topic, payload and message id becomes 1, 2, 3, …
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub count: u64,

    /// Messages a second [default: as fast as they are confirmed].
    #[arg(long, value_name = "R")]
    pub rate: Option<f64>,

    /// Broker to talk to.
    #[arg(long, value_name = "ADDR", env = "TINYBROKER_BROKER", default_value = "127.0.0.1:50051")]
    pub broker: String,
}

/// Options of `tinybroker sub`.
#[derive(Debug, clap::Args)]
pub struct SubOptions {
    /// Patterns of topics, for example 'order.*'. Quote them, or the shell expands them.
    #[arg(required = true)]
    pub patterns: Vec<String>,

    /// Consumer group: its members share the messages. Without one, every message comes here.
    #[arg(long, value_name = "G")]
    pub group: Option<String>,

    /// Only one member of the group is active, the others stand by.
    #[arg(long, requires = "group")]
    pub singleton: bool,

    /// Whether what comes is acked once it is printed.
    #[arg(long, value_enum, default_value_t = AckMode::Auto)]
    pub ack: AckMode,

    /// Messages un-acked at once [default: 1 in a group, no acks without].
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub max_in_flight: u32,

    /// One JSON object a line.
    #[arg(long)]
    pub json: bool,

    /// End after so many messages.
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,

    /// Broker to talk to.
    #[arg(long, value_name = "ADDR", env = "TINYBROKER_BROKER", default_value = "127.0.0.1:50051")]
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
            _ => Err("give KEY=VALUE".into()),
        }
    }
}
