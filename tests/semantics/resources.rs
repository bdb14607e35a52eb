//! SPEC §5: without io_uring or locked memory the process says so in one line with the remedy, and ends.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::options::refusal_of;

fn serve() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tinybroker"));
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    command
}

#[test]
fn too_little_locked_memory() {
    let mut command = Command::new("sh");
    let bin = env!("CARGO_BIN_EXE_tinybroker");
    command.args(["-c", &format!("ulimit -l 64; exec '{bin}' serve --listen 127.0.0.1:0")]);
    let line = refusal_of(command);
    for word in ["locked memory", "ulimit -l", "65536"] {
        assert!(line.contains(word), "{line}");
    }
}

#[test]
fn no_io_uring() {
    let mut command = serve();
    // SAFETY: between fork and exec only prctl is called, on memory that was there before.
    unsafe { command.pre_exec(forbid_io_uring) };
    let line = refusal_of(command);
    for word in ["io_uring", "seccomp", "kernel.io_uring_disabled"] {
        assert!(line.contains(word), "{line}");
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
