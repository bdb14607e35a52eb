//! The runtime: pinned executors, tasks, timers. The only file beside `frontend/net` that knows glommio.

use std::future::Future;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
pub use glommio::net::AcceptedTcpStream as Accepted;
use glommio::timer::Timer;
use glommio::{Latency, LocalExecutorBuilder, Placement, Shares, TaskQueueHandle};

/// When glommio interrupts tasks to look at sockets and timers. So long that it never comes: an
/// executor whose preempt timer fires in the few instructions between the look at its sockets and
/// the first task goes to sleep with tasks that are ready to run (glommio 0.9.0,
/// `run_task_queues`), and with a short timer a busy machine gets there within minutes. Nothing here
/// needs the interruption: no task wakes itself in a loop, whoever has more to do comes back by
/// [`yield_now`], behind sockets and timers.
const PREEMPT: Duration = Duration::from_secs(1);
/// How soon after the others' turn a task that yields comes back.
const YIELD: Duration = Duration::from_micros(1);
/// Registered memory for file reads, of which there are none: the least that the runtime takes.
const IO_MEMORY: usize = 64 * 1024;
/// Entries of each of the runtime's three rings.
const RING_DEPTH: usize = 256;
/// What a process exits with when an executor dies.
pub const EXIT_EXECUTOR_DIED: i32 = 70;

/// Why an executor did not start.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error(
        "io_uring is not available ({0}); allow it: sysctl kernel.io_uring_disabled=0, and in containers a seccomp profile that permits io_uring_setup, io_uring_enter and io_uring_register"
    )]
    NoIoUring(io::Error),
    #[error(
        "locked memory is limited to {limit} bytes, {needed} are needed; raise it: ulimit -l unlimited, LimitMEMLOCK=infinity in systemd, --ulimit memlock=-1 in docker"
    )]
    LockedMemory { limit: u64, needed: u64 },
    #[error("executor on core {core} did not start: {reason}")]
    Other { core: usize, reason: String },
}

/// Starts a pinned executor that runs `main` to its end on a thread of its own.
///
/// A panic that reaches the executor ends the process: half a broker is worse than none.
pub fn start<F, M>(index: usize, core: usize, spin: Duration, main: M) -> io::Result<JoinHandle<()>>
where
    M: FnOnce() -> F + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    std::thread::Builder::new().name(format!("executor-{index}")).spawn(move || {
        let executor = LocalExecutorBuilder::new(Placement::Fixed(core))
            .name(&format!("executor-{index}"))
            .preempt_timer(PREEMPT)
            .io_memory(IO_MEMORY)
            .ring_depth(RING_DEPTH)
            .spin_before_park(spin)
            .make();
        let executor = match executor {
            Ok(executor) => executor,
            Err(error) => die(&explain(core, error.into()).to_string()),
        };
        if catch_unwind(AssertUnwindSafe(|| executor.run(async move { main().await }))).is_err() {
            die(&format!("executor {index} panicked; the process ends"));
        }
    })
}

pub(super) fn die(reason: &str) -> ! {
    // Nobody may be listening; the process ends all the same.
    let _ = writeln!(io::stderr(), "tinybroker: {reason}");
    process::exit(EXIT_EXECUTOR_DIED);
}

/// Tries what an executor needs, so that a process which cannot run says so before it listens.
pub fn probe(core: usize) -> Result<(), RuntimeError> {
    let limit = locked_memory_limit();
    if limit < LOCKED_MEMORY_NEEDED {
        return Err(RuntimeError::LockedMemory { limit, needed: LOCKED_MEMORY_NEEDED });
    }
    // glommio panics where the kernel has no io_uring for it: ask the kernel first.
    try_io_uring().map_err(|error| explain(core, error))?;
    let made = std::thread::spawn(move || {
        let builder = LocalExecutorBuilder::new(Placement::Fixed(core));
        builder.io_memory(IO_MEMORY).ring_depth(RING_DEPTH).make().map(drop).map_err(io::Error::from)
    });
    match made.join() {
        Ok(made) => made.map_err(|error| explain(core, error)),
        Err(_) => Err(RuntimeError::Other { core, reason: "it panicked".into() }),
    }
}

fn try_io_uring() -> io::Result<()> {
    /// `struct io_uring_params` of the kernel's interface: 120 bytes, zero for the defaults.
    #[repr(C, align(8))]
    struct Params([u8; 120]);
    let mut params = Params([0; 120]);
    // SAFETY: the pointer is valid for the call, which returns a descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 2, &mut params) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and nobody else's.
    drop(unsafe { OwnedFd::from_raw_fd(fd as RawFd) });
    Ok(())
}

fn explain(core: usize, error: io::Error) -> RuntimeError {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => RuntimeError::NoIoUring(error),
        Some(libc::ENOMEM) => {
            RuntimeError::LockedMemory { limit: locked_memory_limit(), needed: LOCKED_MEMORY_AMPLE }
        }
        _ => RuntimeError::Other { core, reason: error.to_string() },
    }
}

/// Below this glommio starts no executor.
const LOCKED_MEMORY_NEEDED: u64 = 512 * 1024;
/// What one executor may lock, to be named when the kernel says no without a figure.
const LOCKED_MEMORY_AMPLE: u64 = 8 * 1024 * 1024;

fn locked_memory_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid for the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) } {
        0 => limit.rlim_cur,
        _ => 0,
    }
}

/// While it is held a panic ends the process, whoever would have caught it: for what must not be left
/// half done.
pub struct Indivisible;

impl Drop for Indivisible {
    fn drop(&mut self) {
        if std::thread::panicking() {
            die("a shard panicked; the process ends");
        }
    }
}

/// Runs a task of the executor's own, in a queue of its own, whose foreign wakes interrupt the others.
/// Its panic ends the process.
pub fn spawn_pump(task: impl Future<Output = ()> + 'static) {
    let queue = glommio::executor().create_task_queue(Shares::default(), Latency::Matters(PREEMPT), "pump");
    let guarded = async move {
        if AssertUnwindSafe(task).catch_unwind().await.is_err() {
            die("a pump panicked; the process ends");
        }
    };
    match glommio::spawn_local_into(guarded, queue) {
        Ok(task) => drop(task.detach()),
        Err(error) => die(&format!("the pump did not start: {error}")),
    }
}

/// Runs a task whose panic is its own: it is logged, and the executor lives on.
pub fn spawn(name: &'static str, task: impl Future<Output = ()> + 'static) {
    let guarded = async move {
        if AssertUnwindSafe(task).catch_unwind().await.is_err() {
            tracing::error!(task = name, "task panicked");
        }
    };
    // Into the default queue, also where the pump's is the present one.
    match glommio::spawn_local_into(guarded, TaskQueueHandle::default()) {
        Ok(task) => drop(task.detach()),
        Err(error) => tracing::error!(task = name, %error, "task not started"),
    }
}

/// Lets sockets, timers and all other tasks of this executor have their turn.
pub fn yield_now() -> Sleep {
    sleep(YIELD)
}

/// A timer of this executor. Not to be moved to another thread.
pub struct Sleep(Timer);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

pub fn sleep(span: Duration) -> Sleep {
    Sleep(Timer::new(span))
}

pub fn sleep_until(deadline: Instant) -> Sleep {
    sleep(deadline.saturating_duration_since(Instant::now()))
}
