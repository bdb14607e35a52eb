use std::io::IsTerminal;
use std::str::FromStr;

use tracing_subscriber::filter::{EnvFilter, LevelFilter};

/// What is logged, to standard error, and how.
#[derive(Debug, Clone, clap::Args)]
pub struct LogOptions {
    /// Log format and level: text or json, then off, error, warn, info, debug or trace.
    #[arg(long, value_name = "FORMAT/LEVEL", env = "TINYBROKER_LOG", default_value = "text/info")]
    pub log: LogFormat,
}

/// A format and a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogFormat {
    pub json: bool,
    pub level: LevelFilter,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (format, level) = text.split_once('/').unwrap_or((text, "info"));
        let json = match format {
            "text" => false,
            "json" => true,
            _ => return Err("the format is text or json, for example json/warn".into()),
        };
        let level =
            level.parse().map_err(|_| "the level is off, error, warn, info, debug or trace".to_owned())?;
        Ok(LogFormat { json, level })
    }
}

impl LogFormat {
    /// The libraries' warnings are about what the broker reports itself, or what any client can provoke:
    /// they are for those who look closer.
    fn filter(self) -> EnvFilter {
        let filter = EnvFilter::default().add_directive(self.level.into());
        if self.level > LevelFilter::INFO {
            return filter;
        }
        let quiet = |target: &str| format!("{target}={}", self.level.min(LevelFilter::ERROR));
        ["h2"].iter().filter_map(|target| quiet(target).parse().ok()).fold(filter, EnvFilter::add_directive)
    }
}

impl LogOptions {
    /// Logs from here on.
    pub fn start(&self) {
        let logger = tracing_subscriber::fmt()
            .with_env_filter(self.log.filter())
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        let started = if self.log.json { logger.json().try_init() } else { logger.try_init() };
        debug_assert!(started.is_ok(), "logging starts once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_levels() {
        let json = LogFormat { json: true, level: LevelFilter::WARN };
        assert_eq!("json/warn".parse(), Ok(json));
        assert_eq!("text".parse(), Ok(LogFormat { json: false, level: LevelFilter::INFO }));
        assert!("xml/info".parse::<LogFormat>().is_err());
        assert!("text/loud".parse::<LogFormat>().is_err());
    }
}
