//! SPEC §4 and §5: what the process cannot run with, it says in one line, and ends.

use std::process::{Command, Stdio};

use crate::support::*;

/// What `serve` with these arguments says on standard error, as it ends without success.
pub fn refusal(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tinybroker"));
    command.arg("serve");
    if !args.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command.args(args);
    refusal_of(command)
}

/// What the command says on standard error, in one line, as it ends without success.
pub fn refusal_of(mut command: Command) -> String {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let deadline = std::time::Instant::now() + LIMIT;
    while child.try_wait().expect("a child can be asked").is_none() {
        if std::time::Instant::now() > deadline {
            child.kill().expect("a child can be killed");
            panic!("{command:?} does not end");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("its output can be read");
    let text = String::from_utf8(output.stderr).expect("its words are text");
    assert!(!output.status.success(), "{command:?}");
    assert_eq!(text.trim_end().lines().count(), 1, "{command:?} says {text:?}");
    text
}

#[test]
fn a_bad_option_is_one_line_that_names_it() {
    for (args, words) in [
        (["--shards", "0"], ["--shards", "1 to 256"]),
        (["--shards", "257"], ["--shards", "256"]),
        (["--shards", "many"], ["--shards", "many"]),
        (["--frontends", "0"], ["--frontends", "1 to 256"]),
        (["--frontends", "1000"], ["--frontends", "256"]),
        (["--cores", "9999"], ["--cores", "9999"]),
        (["--cores", "one"], ["--cores", "one"]),
        (["--cores", "1-0"], ["--cores", "1-0"]),
        (["--cores", ""], ["--cores", ""]),
        (["--log", "xml/info"], ["--log", "text or json"]),
        (["--log", "text/loud"], ["--log", "debug"]),
        (["--max-message-bytes", "0"], ["--max-message-bytes", "0"]),
        (["--max-message-bytes", "4194304"], ["--max-message-bytes", "4193792"]),
        (["--max-message-bytes", "big"], ["--max-message-bytes", "big"]),
        (["--max-pending", "0"], ["--max-pending", "0"]),
        (["--max-pending-bytes", "0"], ["--max-pending-bytes", "0"]),
        (["--memory-limit", "1000"], ["--memory-limit", "4193972"]),
        (["--drain-timeout", "soon"], ["--drain-timeout", "soon"]),
        (["--nonsense", "1"], ["--nonsense", ""]),
    ] {
        let line = refusal(&args);
        for word in words {
            assert!(line.contains(word), "{args:?} says {line:?}, not {word:?}");
        }
    }
}

#[test]
fn the_environment_is_read_as_the_options_are() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tinybroker"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("TINYBROKER_SHARDS", "0");
    let line = refusal_of(command);
    assert!(line.contains("shards"), "{line}");
}
