//! `docs/options.md` and `--help` say what clap is told.

use std::collections::BTreeSet;

use clap::{Arg, Command, CommandFactory, Parser};

use crate::lines::run;

const REFERENCE: &str = include_str!("../../docs/options.md");

fn commands() -> Vec<Command> {
    let mut root = tinybroker::config::Options::command();
    root.build();
    root.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect()
}

/// The rows of the table of one command, by cells.
fn rows(command: &Command) -> Vec<Vec<&'static str>> {
    let heading = format!("\n## tinybroker {}\n", command.get_name());
    let (_, section) = REFERENCE.split_once(&heading).unwrap_or_else(|| panic!("no section {heading:?}"));
    let section = section.split("\n## ").next().unwrap_or(section);
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

fn name(arg: &Arg) -> String {
    match arg.get_long() {
        Some(long) => format!("--{long}"),
        None => arg.get_value_names().unwrap_or_default().concat(),
    }
}

fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| arg.get_id() != "help")
}

#[test]
fn the_reference_has_every_option_with_its_environment_and_default() {
    for command in commands() {
        let rows = rows(&command);
        for arg in arguments(&command) {
            let name = name(arg);
            let called = |row: &&Vec<&str>| {
                let cell = row[0].trim_matches('`');
                cell == name || cell.starts_with(&format!("{name} "))
            };
            let row = rows.iter().find(called).unwrap_or_else(|| panic!("{name} has no row"));
            let [_, env, default, _] = row[..] else { panic!("{row:?} has not four cells") };
            let wanted = arg.get_env().map_or(String::new(), |env| format!("`{}`", env.to_string_lossy()));
            assert_eq!(env, wanted, "environment of {name}");
            let values: Vec<_> =
                arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
            match values.concat().as_str() {
                // What the command finds out by itself is told in words.
                "" => assert!(!default.contains('`'), "{name} has no fixed default: {default}"),
                _ if !arg.get_action().takes_values() => assert_eq!(default, "off", "default of {name}"),
                value => assert_eq!(default, format!("`{value}`"), "default of {name}"),
            }
        }
    }
}

#[test]
fn by_default_the_broker_listens_on_loopback_alone_on_its_port() {
    let options = tinybroker::config::Options::parse_from(["tinybroker", "serve"]);
    let tinybroker::config::Command::Serve(serve) = options.command else { panic!("{options:?}") };
    assert_eq!(serve.listen, ["localhost:50051"]);
}

#[test]
fn the_reference_has_no_option_that_is_not_there() {
    for command in commands() {
        let known: BTreeSet<_> = arguments(&command).map(name).collect();
        for row in rows(&command) {
            let told = row[0].trim_matches('`').split(' ').next().unwrap_or_default();
            assert!(known.contains(told), "{} has no {told}", command.get_name());
        }
    }
}

#[tokio::test]
async fn help_has_examples_that_parse() {
    for command in ["pub", "sub"] {
        let ended = run(&[command, "--help"]).await;
        let help = ended.succeeds();
        let (_, examples) = help.split_once("Examples:\n").expect("there are examples");
        assert!(examples.lines().count() >= 3, "{examples}");
        for example in examples.lines() {
            let words = example.split(['|', '<']).next().expect("a split has a part");
            let words = shell_words(words);
            assert_eq!(words[..2], ["tinybroker", command], "{example}");
            let parsed = tinybroker::config::Options::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{example}: {parsed:?}");
        }
    }
}

#[tokio::test]
async fn help_says_what_surprises() {
    let publish = run(&["pub", "--help"]).await;
    assert!(publish.succeeds().contains("`{n}` in topic, payload and message id"), "{publish:?}");
    let subscribe = run(&["sub", "--help"]).await;
    let text = subscribe.succeeds().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("`none` acks nothing: in a group") && text.contains("holds them"), "{text}");
}

/// Words of a command line, with single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(String::from)),
            _ => words.push(part.into()),
        }
    }
    words
}
