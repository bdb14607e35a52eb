use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;

use super::calls::{Calls, Services};
use super::hub::{Frontend, OnConnection, PhaseWatch};
use super::keepalive::keepalive;
use super::net::{Io, Turn};
use super::tasks::{Agenda, Spawner, Tasks};
use crate::limits;
use crate::shard::Phase;
use crate::shard::runtime::{self, Accepted, Sleep};

/// Makes the services of each new connection of a frontend.
pub type MakeServices = Box<dyn Fn(&Rc<Frontend>) -> Rc<dyn Services>>;

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
    let books = Books::new(&frontend);
    let turn = Rc::<Turn>::default();
    let io = match Io::new(accepted, turn.clone()) {
        Ok(io) => io,
        Err(error) => return tracing::debug!(%error, "a connection ended before it began"),
    };
    let (agenda, spawner) = (Arc::<Agenda>::default(), Spawner::default());
    let services = make_services(&frontend);
    let mut connection = Connection {
        peer: io.peer(),
        http2: Http2::Beginning(builder().handshake(io)),
        preface: Some(runtime::sleep(limits::PREFACE_TIMEOUT)),
        is_told: false,
        is_lost: Rc::default(),
        accepted: Vec::new(),
        calls: Calls::new(frontend.clone(), services, spawner.clone(), turn.clone()),
        tasks: Tasks::new(agenda.clone(), spawner.clone()),
        waker: agenda.clone().into(),
        spawner,
        agenda,
        turn,
        frontend,
        books,
    };
    connection.waker.wake_by_ref();
    poll_fn(|cx| connection.poll(cx)).await;
}

fn builder() -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .max_concurrent_streams(limits::STREAMS_PER_CONNECTION)
        .initial_window_size(limits::STREAM_WINDOW_BYTES)
        .initial_connection_window_size(limits::CONNECTION_WINDOW_BYTES)
        .data_frame_budget(limits::SMALL_FRAMES_BUDGET)
        .max_pending_accept_reset_streams(limits::RESET_STREAMS_PER_TURN)
        .max_header_list_size(limits::HEADER_LIST_BYTES)
        .max_send_buffer_size(limits::STREAM_SEND_BUFFER_BYTES);
    builder
}

struct Connection {
    // Its calls end before the books are closed.
    tasks: Tasks,
    http2: Http2,
    /// Requests that were read and have not begun.
    accepted: Vec<(Request<RecvStream>, SendResponse<Bytes>)>,
    calls: Calls,
    spawner: Spawner,
    agenda: Arc<Agenda>,
    /// The agenda, as HTTP/2 and timers wake it.
    waker: Waker,
    turn: Rc<Turn>,
    /// Until when it must have begun.
    preface: Option<Sleep>,
    /// The client knows that the broker goes down.
    is_told: bool,
    /// The client gives no sign of life.
    is_lost: Rc<Cell<bool>>,
    peer: Option<std::net::SocketAddr>,
    frontend: Rc<Frontend>,
    books: Books,
}

enum Http2 {
    Beginning(server::Handshake<Io, Bytes>),
    Serving(server::Connection<Io, Bytes>),
    Over,
}

impl Connection {
    /// One turn: reads, runs what can run, and writes what that has to say.
    fn poll(&mut self, outer: &mut Context<'_>) -> Poll<()> {
        self.agenda.begin_turn(outer);
        self.turn.begin();
        let waker = self.waker.clone();
        let cx = &mut Context::from_waker(&waker);
        self.books.phase.remember(cx);
        if self.is_overdue(cx) {
            return Poll::Ready(());
        }
        self.run(outer, cx);
        match self.http2 {
            Http2::Over if self.tasks.is_empty() => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// Round after round, until nothing more can be done or others come first.
    fn run(&mut self, outer: &Context<'_>, cx: &mut Context<'_>) {
        for round in 1.. {
            if self.agenda.take_connection() {
                self.advance(cx);
                // They begin together, since each look at the socket would send an answer of its own, and behind
                // what the streams have said before them.
                let begin = |(request, response)| self.calls.begin(request, response);
                self.tasks.extend(self.accepted.drain(..).map(begin));
            }
            self.tasks.run(limits::TASKS_IN_ONE_GO);
            // Other executors begin with it while this one still writes.
            self.frontend.node.flush();
            if self.turn.resumes() {
                self.waker.wake_by_ref();
            }
            if self.turn.has_written_enough() || round >= limits::ROUNDS_IN_ONE_TURN {
                break;
            }
            if !self.has_work() {
                self.agenda.end_turn();
                // What has come since then may have met a turn.
                if !self.has_work() {
                    break;
                }
                self.agenda.begin_turn(outer);
            }
        }
        if self.turn.is_capped() {
            self.agenda.leave_connection();
        }
        self.agenda.end_turn();
        if self.has_work() {
            runtime::come_back(&mut Context::from_waker(outer.waker()));
        }
    }

    fn has_work(&self) -> bool {
        self.tasks.has_work() || self.agenda.has_work()
    }

    /// Has not begun in time, or not before the broker goes down: it would have to wait for its preface.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(preface) = &mut self.preface else { return false };
        if self.turn.total() >= SHORTEST_BEGINNING {
            self.preface = None;
            return false;
        }
        self.frontend.phase() == Phase::Closing || Pin::new(preface).poll(cx).is_ready()
    }

    /// Reads what there is and writes what can be written.
    fn advance(&mut self, cx: &mut Context<'_>) {
        if let Http2::Beginning(handshake) = &mut self.http2 {
            match Pin::new(handshake).poll(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(connection)) => self.begin(connection),
                Poll::Ready(Err(error)) => return self.end(Some(error)),
            }
        }
        let Http2::Serving(connection) = &mut self.http2 else { return };
        if self.frontend.phase() == Phase::Closing && !std::mem::replace(&mut self.is_told, true) {
            connection.graceful_shutdown();
        }
        if self.is_lost.take() {
            connection.abrupt_shutdown(Reason::NO_ERROR);
        }
        loop {
            match connection.poll_accept(cx) {
                Poll::Ready(Some(Ok(call))) => self.accepted.push(call),
                Poll::Ready(Some(Err(error))) => return self.end(Some(error)),
                Poll::Ready(None) => return self.end(None),
                Poll::Pending => return,
            }
        }
    }

    fn begin(&mut self, mut connection: server::Connection<Io, Bytes>) {
        if let Some(pings) = connection.ping_pong() {
            let (turn, is_lost, waker) = (self.turn.clone(), self.is_lost.clone(), self.waker.clone());
            self.spawner.add(async move {
                keepalive(pings, turn).await;
                is_lost.set(true);
                waker.wake();
            });
        }
        self.http2 = Http2::Serving(connection);
    }

    /// Its calls hear of the end, and have their last words with themselves.
    fn end(&mut self, error: Option<h2::Error>) {
        if let Some(error) = error {
            tracing::debug!(peer = ?self.peer, %error, "connection ended");
        }
        self.http2 = Http2::Over;
    }
}

/// A connection's place in the books of its frontend.
struct Books {
    frontend: Rc<Frontend>,
    phase: PhaseWatch,
}

impl Books {
    fn new(frontend: &Rc<Frontend>) -> Self {
        Books { frontend: frontend.clone(), phase: PhaseWatch::new(frontend) }
    }
}

impl Drop for Books {
    fn drop(&mut self) {
        let node = &self.frontend.node;
        node.shared.connections(node.me()).fetch_sub(1, SeqCst);
        // Streams that end with their connection have left by now.
        node.flush();
    }
}
