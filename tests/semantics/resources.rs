//! SPEC §5: without io_uring and locked memory, of which the broker needs neither, it serves; without file descriptors
//! to start with it says so in one line with the remedy, and ends; without any left it waits and goes on.

use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::options::refusal_of;
use crate::support::*;

/// `serve` in a shell that has set such limits first.
fn serve_with(limits: &str) -> Command {
    let mut command = Command::new("sh");
    let bin = env!("CARGO_BIN_EXE_tinybroker");
    command.args(["-c", &format!("{limits}; exec '{bin}' serve --listen 127.0.0.1:0")]);
    command
}

#[tokio::test]
async fn no_locked_memory_is_needed() {
    Broker::launch(serve_with("ulimit -l 0")).client().await.publish("a", "served").await;
}

#[tokio::test]
async fn no_io_uring_is_needed() {
    let mut command = serve_with("true");
    // SAFETY: between fork and exec only prctl is called, on memory that was there before.
    unsafe { command.pre_exec(forbid_io_uring) };
    Broker::launch(command).client().await.publish("a", "served").await;
}

#[test]
fn too_few_file_descriptors_to_start() {
    for descriptors in [8, 16, 32] {
        let line = refusal_of(serve_with(&format!("ulimit -n {descriptors}")));
        assert!(line.contains("ulimit -n"), "{descriptors}: {line}");
    }
}

/// What the default profiles of container runtimes do: io_uring_setup is EPERM.
fn forbid_io_uring() -> io::Result<()> {
    let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The number of the system call is the first word.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_io_uring_setup as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the pointers are valid for the calls.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[test]
fn as_many_file_descriptors_are_allowed_as_may_be() {
    let broker = Broker::launch(serve_with("ulimit -Sn 64"));
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", broker.pid())).expect("it runs");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line a limit");
    let figures: Vec<_> = line.split_whitespace().skip(3).take(2).collect();
    assert_eq!(figures[0], figures[1], "{line}");
    assert_ne!(figures[0], "64", "the test needs a hard limit above its soft one");
}

#[tokio::test]
async fn out_of_file_descriptors_the_accept_loop_waits_and_goes_on() {
    const DESCRIPTORS: usize = 64;
    let broker =
        Broker::launch(serve_with(&format!("ulimit -n {DESCRIPTORS}; export TINYBROKER_LOG=text/warn")));
    let early = broker.client().await;
    let strangers: Vec<_> = (0..DESCRIPTORS).map(|_| TcpStream::connect(broker.address())).collect();
    assert!(strangers.iter().all(Result::is_ok), "the kernel's backlog takes them");
    let open = || std::fs::read_dir(format!("/proc/{}/fd", broker.pid())).expect("it runs").count();
    in_time(async {
        while open() < DESCRIPTORS {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    early.publish("still", "served").await;
    drop(strangers);
    broker.client().await.publish("served", "again").await;
}
