//! The runtime: pinned executors, tasks, timers. The only file beside `frontend/net` that knows glommio.

use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::process;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
pub use glommio::net::AcceptedTcpStream as Accepted;
use glommio::timer::Timer;
use glommio::{GlommioError, Latency, LocalExecutorBuilder, Placement, ReactorErrorKind, Shares};

/// A busy executor looks at its rings and sockets at least this often.
const PREEMPT: Duration = Duration::from_micros(500);
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
            Err(error) => die(&explain(core, error).to_string()),
        };
        if catch_unwind(AssertUnwindSafe(|| executor.run(async move { main().await }))).is_err() {
            die(&format!("executor {index} panicked; the process ends"));
        }
    })
}

fn die(reason: &str) -> ! {
    eprintln!("tinybroker: {reason}");
    process::exit(EXIT_EXECUTOR_DIED);
}

/// Tries what an executor needs, so that a process which cannot run says so before it listens.
pub fn probe(core: usize) -> Result<(), RuntimeError> {
    let probe = std::thread::spawn(move || {
        let made = LocalExecutorBuilder::new(Placement::Fixed(core))
            .io_memory(IO_MEMORY)
            .ring_depth(RING_DEPTH)
            .make();
        made.map(drop).map_err(|error| explain(core, error))
    });
    probe.join().unwrap_or_else(|_| Err(RuntimeError::Other { core, reason: "it panicked".into() }))
}

fn explain(core: usize, error: GlommioError<()>) -> RuntimeError {
    match error {
        GlommioError::ReactorError(ReactorErrorKind::MemLockLimit(limit, needed)) => {
            RuntimeError::LockedMemory { limit, needed }
        }
        GlommioError::IoError(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::ENOSYS | libc::EACCES) => RuntimeError::NoIoUring(error),
            Some(libc::ENOMEM) => RuntimeError::LockedMemory { limit: locked_memory_limit(), needed: NEEDED },
            _ => RuntimeError::Other { core, reason: error.to_string() },
        },
        other => RuntimeError::Other { core, reason: other.to_string() },
    }
}

/// What one executor may lock, to be named when the kernel says no without a figure.
const NEEDED: u64 = 8 * 1024 * 1024;

fn locked_memory_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid for the call.
    match unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) } {
        0 => limit.rlim_cur,
        _ => 0,
    }
}

/// Runs a task of the executor's own, ahead of connections. Its panic ends the process.
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
    drop(glommio::spawn_local(guarded).detach());
}

/// Lets the other tasks of this executor have their turn.
pub async fn yield_now() {
    glommio::executor().yield_task_queue_now().await;
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
