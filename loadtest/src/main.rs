//! Drives a tinybroker over gRPC, on this machine or another, and says what it did: rates, latencies from the
//! time at which a message was meant to be sent, the broker's cost, and a ledger of every message.
//!
//! ```text
//! scenario ──plan──▶ ledger          crew: few threads, many roles
//!    └────────────▶ trial ─conducts─▶ publishers ──▶ broker ──▶ workers
//!                     │                    └── recorder, ledger ──┘
//!                     └──▶ report: table, JSON, HTML
//! ```

mod broker;
mod client;
mod clock;
mod crew;
mod failure;
mod lab;
mod ledger;
mod load;
mod machine;
mod measured;
mod options;
mod pacer;
mod payload;
mod progress;
mod proto;
mod recorder;
mod report;
mod role;
mod scenario;
mod suite;
mod trial;
mod window;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use broker::{Broker, Target};
use failure::{Doing, Failure};
use lab::Lab;
use options::{Options, OutputOptions};
use progress::Progress;
use report::{Environment, Report, html, table};
use scenario::Scenario;

fn main() -> ExitCode {
    let options = Options::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("starting the runtime: {error}")),
    };
    match runtime.block_on(run(&options)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(Failure::Usage(what)) => {
            eprintln!("tinybroker-loadtest: {what}");
            ExitCode::from(2)
        }
        Err(failure) => fail(&failure.to_string()),
    }
}

fn fail(what: &str) -> ExitCode {
    eprintln!("tinybroker-loadtest: {what}");
    ExitCode::from(3)
}

/// Whether all promises were kept.
async fn run(options: &Options) -> Result<bool, Failure> {
    if let Scenario::Victim(victim) = &options.scenario {
        // It reports to its parent, and there is no broker to ask.
        return victim.run().await.map(|()| true);
    }
    let target = options.broker.target()?;
    let progress = Arc::new(Progress::new());
    let environment = environment(&target).await?;
    let lab = Lab { target, load: options.load.clone(), progress: Arc::clone(&progress) };
    let runs = match &options.scenario {
        Scenario::All(set) => suite::run(&lab, set).await,
        scenario => scenario.run(&lab).await,
    };
    progress.end();
    let report = Report { environment, runs: runs? };
    write(&report, &options.output)?;
    // Whoever reads may have seen enough; the files are written and the exit code tells the rest.
    let _ = std::io::stdout().write_all(table::text(&report).as_bytes());
    Ok(report.passed())
}

/// What is measured where. A broker that is started here is started once more for it.
async fn environment(target: &Target) -> Result<Environment, Failure> {
    let broker = Broker::new(target).await?;
    let info = broker.info().await?;
    let address = broker.address().to_owned();
    let on_this_machine = tokio::net::lookup_host(&address)
        .await
        .doing("looking up the broker")?
        .any(|address| report::environment::Broker::is_local(address.ip()));
    broker.end().await?;
    Ok(Environment::gather(report::environment::Broker {
        address,
        version: info.version,
        shards: info.shards,
        frontends: info.frontends,
        cores: info.cores,
        arguments: target.arguments(),
        on_this_machine,
    }))
}

fn write(report: &Report, output: &OutputOptions) -> Result<(), Failure> {
    if let Some(path) = &output.json {
        let text =
            serde_json::to_string_pretty(report).map_err(|error| Failure::Unexpected(error.to_string()))?;
        write_file(path, &text)?;
    }
    if let Some(path) = &output.html {
        write_file(path, &html::render(report))?;
    }
    if let Some(path) = &output.markdown {
        write_file(path, &table::markdown(report))?;
    }
    Ok(())
}

fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).doing("writing the report")
}
