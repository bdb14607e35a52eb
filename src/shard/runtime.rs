//! The runtime: pinned executors, tasks, timers. The only file beside `frontend/net` that knows tokio.

use std::future::Future;
use std::io::{self, Write};
pub use std::net::TcpStream as Accepted;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::process;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use core_affinity::CoreId;
use futures_util::FutureExt;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task;

/// What a process exits with when an executor does not start, or dies.
pub const EXIT_EXECUTOR_DIED: i32 = 70;

/// Starts an executor that runs `main` to its end on a thread of its own, pinned to a core.
///
/// A panic that reaches the executor ends the process: half a broker is worse than none.
pub fn start<F, M>(index: usize, core: usize, main: M) -> io::Result<JoinHandle<()>>
where
    M: FnOnce() -> F + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    std::thread::Builder::new().name(format!("executor-{index}")).spawn(move || {
        if !core_affinity::set_for_current(CoreId { id: core }) {
            tracing::warn!(index, core, "the executor cannot be pinned to its core; it runs on any");
        }
        let runtime = match new_runtime() {
            Ok(runtime) => runtime,
            Err(error) => die(&format!("executor {index} did not start: {error}")),
        };
        if catch_unwind(AssertUnwindSafe(|| runtime.block_on(async move { main().await }))).is_err() {
            die(&format!("executor {index} panicked; the process ends"));
        }
    })
}

/// One thread, whose tasks need not be Send.
fn new_runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread().enable_io().enable_time().build_local(LocalOptions::default())
}

pub(super) fn die(reason: &str) -> ! {
    // Nobody may be listening; the process ends all the same.
    let _ = writeln!(io::stderr(), "tinybroker: {reason}");
    process::exit(EXIT_EXECUTOR_DIED);
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

/// Runs a task of the executor's own. Its panic ends the process.
pub fn spawn_pump(task: impl Future<Output = ()> + 'static) {
    spawn_guarded(task, || die("a pump panicked; the process ends"));
}

/// Runs a task whose panic is its own: it is logged, and the executor lives on.
pub fn spawn(name: &'static str, task: impl Future<Output = ()> + 'static) {
    spawn_guarded(task, move || tracing::error!(task = name, "task panicked"));
}

/// Its turns have bounds of their own: the runtime's budget for a turn would end one in the midst of a connection.
fn spawn_guarded(task: impl Future<Output = ()> + 'static, panicked: impl FnOnce() + 'static) {
    let guarded = async move {
        if AssertUnwindSafe(task).catch_unwind().await.is_err() {
            panicked();
        }
    };
    drop(task::spawn_local(task::coop::unconstrained(guarded)));
}

/// Lets sockets, timers and all other tasks of this executor have their turn.
pub async fn yield_now() {
    task::yield_now().await;
}

/// Wakes a task behind sockets, timers and all other tasks of this executor.
pub fn come_back(cx: &mut Context<'_>) {
    // Its first poll asks for the wake.
    let _ = pin!(task::yield_now()).poll(cx);
}

/// A timer of this executor, to the millisecond and never early. Not to be moved to another thread.
pub struct Sleep(Pin<Box<tokio::time::Sleep>>);

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}

pub fn sleep(span: Duration) -> Sleep {
    Sleep(Box::pin(tokio::time::sleep(span)))
}

pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep(Box::pin(tokio::time::sleep_until(deadline.into())))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// Runs `main` on a runtime such as an executor's.
    fn run(main: impl Future<Output = ()>) {
        new_runtime().expect("a runtime").block_on(main);
    }

    #[test]
    fn who_yields_comes_back_behind_all_that_are_ready() {
        run(async {
            let order = Rc::<RefCell<Vec<&str>>>::default();
            let note = |what| {
                let order = order.clone();
                move || order.borrow_mut().push(what)
            };
            let (first, back, other) = (note("first"), note("back"), note("other"));
            spawn("first", async move {
                first();
                yield_now().await;
                back();
            });
            spawn("other", async move { other() });
            while order.borrow().len() < 3 {
                yield_now().await;
            }
            assert_eq!(*order.borrow(), ["first", "other", "back"]);
        });
    }

    #[test]
    fn a_task_that_yields_for_ever_holds_up_neither_timers_nor_others() {
        run(async {
            spawn("restless", async {
                loop {
                    yield_now().await;
                }
            });
            sleep(Duration::from_millis(3)).await;
        });
    }

    #[test]
    fn a_panic_ends_its_task_alone() {
        run(async {
            spawn("unlucky", async { panic!("as it should") });
            let done = Rc::<RefCell<bool>>::default();
            let sign = done.clone();
            spawn("lucky", async move { *sign.borrow_mut() = true });
            while !*done.borrow() {
                yield_now().await;
            }
        });
    }
}
