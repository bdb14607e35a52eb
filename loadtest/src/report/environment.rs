//! Under what circumstances the figures came about.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::time::SystemTime;

use procfs::{CpuInfo, Current, Meminfo};
use serde::Serialize;

use super::units;

const UNKNOWN: &str = "unknown";

/// What a reader needs to judge the figures, and to see them again.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Environment {
    /// When the environment was gathered, in UTC, as RFC 3339 has it.
    pub date: String,
    /// The command line that repeats the run, quoted for a shell.
    pub command: String,
    pub loadtest: Program,
    pub machine: Machine,
    pub broker: Broker,
}

/// The load test itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Program {
    pub version: &'static str,
    pub commit: &'static str,
    /// Whether the compiler optimized it: figures of a build without are worth nothing.
    pub optimized: bool,
}

/// The machine that the load test runs on.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Machine {
    pub kernel: String,
    pub architecture: &'static str,
    pub cpu: String,
    /// Cores that the load test may use.
    pub cores: Option<usize>,
    pub memory_bytes: Option<u64>,
    /// Whether it is a guest, which shares its cores with strangers.
    pub virtual_machine: Option<bool>,
}

/// The broker under test, as it describes itself.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Broker {
    pub address: String,
    pub version: String,
    pub shards: u32,
    pub frontends: u32,
    /// Cores that its threads are pinned to; empty where they are not.
    pub cores: Vec<u32>,
    /// Its arguments, where the load test started it.
    pub arguments: Option<Vec<String>>,
    /// Whether it shares the machine with the load test.
    pub on_this_machine: bool,
}

impl Environment {
    /// Looks around. What the system does not tell stays unknown.
    pub fn gather(broker: Broker) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Environment {
            date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            command: format!("{} {}", env!("CARGO_PKG_NAME"), shell(&arguments)).trim_end().to_owned(),
            loadtest: Program {
                version: env!("CARGO_PKG_VERSION"),
                commit: env!("LOADTEST_COMMIT"),
                optimized: !cfg!(debug_assertions),
            },
            machine: Machine::gather(),
            broker,
        }
    }

    /// All of it as names and values, for a reader.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let Environment { loadtest, broker, .. } = self;
        let build =
            if loadtest.optimized { "" } else { ", NOT OPTIMIZED: figures of this build say nothing" };
        let mut facts = vec![
            ("date", self.date.replace('T', " ").replace('Z', " UTC")),
            ("load test", format!("{}, commit {}{build}", loadtest.version, loadtest.commit)),
            ("broker", broker.describe()),
            ("broker's threads", broker.threads()),
        ];
        facts.extend(broker.arguments.as_deref().map(|arguments| match shell(arguments) {
            none if none.is_empty() => ("broker's arguments", "none".to_owned()),
            some => ("broker's arguments", some),
        }));
        facts.extend(self.machine.facts());
        facts
    }
}

impl Machine {
    fn gather() -> Self {
        let cpu = CpuInfo::current().ok();
        let model = cpu.as_ref().and_then(|cpu| cpu.model_name(0));
        let flags = cpu.as_ref().and_then(|cpu| cpu.flags(0));
        Machine {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| UNKNOWN.to_owned(), |release| release.trim().to_owned()),
            architecture: std::env::consts::ARCH,
            cpu: model.unwrap_or(UNKNOWN).to_owned(),
            cores: std::thread::available_parallelism().ok().map(usize::from),
            memory_bytes: Meminfo::current().ok().map(|memory| memory.mem_total),
            virtual_machine: flags.map(|flags| flags.contains(&"hypervisor")),
        }
    }

    fn facts(&self) -> [(&'static str, String); 4] {
        let unknown = || UNKNOWN.to_owned();
        let guest = match self.virtual_machine {
            Some(true) => ", of a virtual machine",
            _ => "",
        };
        let cores = self.cores.map_or_else(unknown, |cores| cores.to_string());
        let memory = self.memory_bytes.map_or_else(unknown, |bytes| units::bytes(bytes as f64));
        [
            ("processor", format!("{} ({})", self.cpu, self.architecture)),
            ("cores", format!("{cores}{guest}")),
            ("memory", memory),
            ("kernel", format!("Linux {}", self.kernel)),
        ]
    }
}

impl Broker {
    /// Whether an address belongs to this machine: only such a one can be bound.
    pub fn is_local(address: IpAddr) -> bool {
        UdpSocket::bind((address, 0)).is_ok()
    }

    fn describe(&self) -> String {
        let place = if self.on_this_machine { "on this machine" } else { "on another machine" };
        format!("{} at {}, {place}", self.version, self.address)
    }

    fn threads(&self) -> String {
        let cores: Vec<String> = self.cores.iter().map(u32::to_string).collect();
        let pinned = match cores.as_slice() {
            [] => "not pinned".to_owned(),
            [one] => format!("pinned to core {one}"),
            many => format!("pinned to cores {}", many.join(", ")),
        };
        format!("{}, {}, {pinned}", several(self.shards, "shard"), several(self.frontends, "frontend"))
    }
}

fn several(count: u32, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Arguments as a shell reads them.
fn shell(arguments: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
    let quoted = |argument: &String| match argument {
        bare if !bare.is_empty() && bare.chars().all(plain) => bare.clone(),
        other => format!("'{}'", other.replace('\'', r"'\''")),
    };
    arguments.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_around_without_failing() {
        let environment = Environment::gather(Broker { version: "1.2.3".to_owned(), ..Broker::default() });
        assert!(environment.command.starts_with("tinybroker-loadtest"), "{}", environment.command);
        assert!(humantime::parse_rfc3339(&environment.date).is_ok(), "{}", environment.date);
        assert!(environment.machine.cores >= Some(1));
        assert!(environment.machine.memory_bytes > Some(1 << 20));
        assert!(environment.facts().iter().all(|(_, value)| !value.is_empty()));
    }

    #[test]
    fn a_shell_reads_the_arguments_back() {
        let given = ["queue", "--rate=10k", "", "a b", "it's", "order.*", "$HOME"].map(str::to_owned);
        let script = format!("printf '%s\\n' {}", shell(&given));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
        let read: Vec<_> = std::str::from_utf8(&output.stdout).expect("text").split('\n').collect();
        assert_eq!(read[..given.len()], given);
    }

    #[test]
    fn knows_its_own_addresses() {
        assert!(Broker::is_local([127, 0, 0, 1].into()));
        assert!(!Broker::is_local([192, 0, 2, 1].into()), "an address kept for documents");
    }
}
