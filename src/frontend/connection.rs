use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll};
use std::time::Instant;

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use send_wrapper::SendWrapper;

use super::call::{self, Services};
use super::hub::{Frontend, OnConnection, PhaseWatch};
use super::net::{Io, Turn};
use super::request::Spawn;
use crate::limits;
use crate::shard::Phase;
use crate::shard::runtime::{self, Accepted, Sleep};

/// Makes the services of each new connection of a frontend.
pub type MakeServices = Box<dyn Fn(&Rc<Frontend>, Spawn, Rc<Turn>) -> Rc<dyn Services>>;

/// Serves each connection of a frontend in a task of its own.
pub fn serve_with(make_services: MakeServices) -> OnConnection {
    let make_services = Rc::new(make_services);
    Box::new(move |frontend, accepted| {
        let make_services = make_services.clone();
        runtime::spawn("connection", async move { serve(frontend, accepted, &make_services).await });
    })
}

/// Bytes of the shortest beginning of a connection: the preface and an empty SETTINGS frame.
const SHORTEST_BEGINNING: u64 = 24 + 9;

/// Serves one connection to its end: HTTP/2 and all calls in one task, so that no call spawns one.
async fn serve(frontend: Rc<Frontend>, accepted: Accepted, make_services: &MakeServices) {
    let tasks = Tasks::default();
    let open = OpenConnection::new(&frontend, tasks.clone());
    let turn = Rc::<Turn>::default();
    let io = match Io::new(accepted, turn.clone()) {
        Ok(io) => io,
        Err(error) => return tracing::debug!(%error, "a connection ended before it began"),
    };
    let peer = io.peer();
    let spawn: Spawn = {
        let tasks = tasks.clone();
        Rc::new(move |task| tasks.add(task))
    };
    let services = make_services(&frontend, spawn.clone(), turn.clone());
    let counters = frontend.counters.clone();
    let service = service_fn(move |request| {
        let (services, counters, spawn) = (services.clone(), counters.clone(), spawn.clone());
        async move { Ok::<_, Infallible>(call::answer(&services, &counters, spawn, request).await) }
    });
    // `None` once it has ended: its calls hear of that at the latest when it is dropped.
    let mut http2 = pin!(Some(http2_server(tasks.clone()).serve_connection(io, service)));
    let mut preface = Some(runtime::sleep(limits::PREFACE_TIMEOUT));
    let mut calls = FuturesUnordered::new();
    let mut is_told = false;
    poll_fn(|cx| {
        open.phase.remember(cx);
        turn.begin();
        let mut is_over = true;
        if let Some(mut connection) = http2.as_mut().as_pin_mut() {
            if frontend.phase() == Phase::Closing && !std::mem::replace(&mut is_told, true) {
                connection.as_mut().graceful_shutdown();
            }
            // A connection that is told before it has begun would wait for its preface.
            let is_silent = turn.total() < SHORTEST_BEGINNING;
            if is_silent && (is_told || is_due(&mut preface, cx)) {
                return Poll::Ready(());
            }
            let ended = connection.poll(cx);
            is_over = ended.is_ready();
            if let Poll::Ready(Err(error)) = ended {
                tracing::debug!(?peer, %error, "connection ended");
            }
        }
        if is_over {
            http2.set(None);
        }
        tasks.poll(&mut calls, cx);
        frontend.node.flush();
        if turn.resumes() {
            cx.waker().wake_by_ref();
        }
        if is_over && calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

fn is_due(timer: &mut Option<Sleep>, cx: &mut Context<'_>) -> bool {
    timer.as_mut().is_some_and(|timer| Pin::new(timer).poll(cx).is_ready())
}

fn http2_server(tasks: Tasks) -> http2::Builder<Tasks> {
    let mut builder = http2::Builder::new(tasks);
    builder
        .timer(Timer)
        .keep_alive_interval(limits::KEEPALIVE_INTERVAL)
        .keep_alive_timeout(limits::KEEPALIVE_TIMEOUT)
        .max_concurrent_streams(limits::STREAMS_PER_CONNECTION)
        .initial_stream_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .max_pending_accept_reset_streams(limits::RESET_STREAMS_PER_TURN)
        .max_header_list_size(limits::HEADER_LIST_BYTES)
        .max_send_buf_size(limits::STREAM_SEND_BUFFER_BYTES)
        .auto_date_header(false);
    builder
}

/// A connection's place in the books of its frontend.
struct OpenConnection {
    frontend: Rc<Frontend>,
    phase: PhaseWatch,
    tasks: Tasks,
}

impl OpenConnection {
    fn new(frontend: &Rc<Frontend>, tasks: Tasks) -> Self {
        OpenConnection { frontend: frontend.clone(), phase: PhaseWatch::new(frontend), tasks }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let node = &self.frontend.node;
        // Where the connection's task panicked some were never run: they hold what holds them.
        drop(self.tasks.new.take());
        node.shared.connections(node.me()).fetch_sub(1, SeqCst);
        // Streams that end with their connection have left by now.
        node.flush();
    }
}

type Calls = FuturesUnordered<LocalBoxFuture<'static, ()>>;

/// Where a connection's calls are put when they begin: hyper's executor, on one task.
#[derive(Clone, Default)]
struct Tasks {
    new: Rc<RefCell<Vec<LocalBoxFuture<'static, ()>>>>,
}

impl Tasks {
    fn add(&self, task: LocalBoxFuture<'static, ()>) {
        self.new.borrow_mut().push(task);
    }

    /// Runs what can run, new ones included.
    fn poll(&self, calls: &mut Calls, cx: &mut Context<'_>) {
        loop {
            calls.extend(self.new.borrow_mut().drain(..));
            match calls.poll_next_unpin(cx) {
                Poll::Ready(Some(())) => {}
                Poll::Ready(None) | Poll::Pending if self.new.borrow().is_empty() => return,
                Poll::Ready(None) | Poll::Pending => {}
            }
        }
    }
}

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.add(Box::pin(task));
    }
}

/// The runtime's timer, as hyper's keepalive wants it.
#[derive(Clone, Copy)]
struct Timer;

impl hyper::rt::Timer for Timer {
    fn sleep(&self, span: std::time::Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(TimerSleep(SendWrapper::new(runtime::sleep(span))))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(TimerSleep(SendWrapper::new(runtime::sleep_until(deadline))))
    }
}

/// Hyper wants its timers Send; these never leave their executor.
struct TimerSleep(SendWrapper<Sleep>);

impl Future for TimerSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut *self.0).poll(cx)
    }
}

impl hyper::rt::Sleep for TimerSleep {}
