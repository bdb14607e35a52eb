//! Sockets: listening, accepting, their options, and reading in turns. Knows tokio.

use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

use crate::limits;
use crate::shard::Node;
use crate::shard::runtime::{self, Accepted};

/// Why the process cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error(
        "--listen {address}: no such address ({reason}); give HOST:PORT, for example 127.0.0.1:50051 or [::]:50051"
    )]
    NoSuchAddress { address: String, reason: io::Error },
    #[error("--listen {address}: {socket} is in use; is another broker running?")]
    InUse { address: String, socket: SocketAddr },
    #[error("--listen {address}: cannot listen on {socket} ({reason})")]
    Refused { address: String, socket: SocketAddr, reason: io::Error },
}

/// Listens on every address that each of `addresses` resolves to.
///
/// Of a name's addresses those of a family that this host has not are passed over, as long as one
/// is left. SO_REUSEPORT is not set: a second broker on the same port must fail.
pub fn listen(addresses: &[String]) -> Result<Vec<StdListener>, ListenError> {
    let mut listeners = Vec::new();
    for address in addresses {
        let no_such = |reason| ListenError::NoSuchAddress { address: address.clone(), reason };
        let mut sockets: Vec<_> = address.to_socket_addrs().map_err(no_such)?.collect();
        // IPv4 first.
        sockets.sort();
        sockets.dedup();
        let before = listeners.len();
        let mut refused = None;
        for socket in sockets {
            match bind(socket, listeners[before..].first()) {
                Ok(listener) => listeners.push(listener),
                Err(reason) if reason.kind() == ErrorKind::AddrInUse => {
                    return Err(ListenError::InUse { address: address.clone(), socket });
                }
                Err(reason) if is_missing_family(&reason) => refused = Some((socket, reason)),
                Err(reason) => {
                    return Err(ListenError::Refused { address: address.clone(), socket, reason });
                }
            }
        }
        if listeners.len() == before {
            return Err(match refused {
                Some((socket, reason)) => ListenError::Refused { address: address.clone(), socket, reason },
                None => no_such(io::Error::other("it resolves to nothing")),
            });
        }
    }
    Ok(listeners)
}

fn is_missing_family(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::ADDRNOTAVAIL | Errno::AFNOSUPPORT))
}

/// Port 0 of a name's second address means the port that its first one got.
fn bind(mut address: SocketAddr, sibling: Option<&StdListener>) -> io::Result<StdListener> {
    if let (0, Some(sibling)) = (address.port(), sibling) {
        address.set_port(sibling.local_addr()?.port());
    }
    let domain = if address.is_ipv6() { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    // After a restart the old connections may still be closing.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // [::] and 0.0.0.0 are two addresses, each listened on only when asked for.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(limits::LISTEN_BACKLOG)?;
    Ok(socket.into())
}

/// Takes a listening socket onto this executor.
pub fn adopt(listener: StdListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Accepts as long as the process lives, and deals connections out to the idlest frontends.
pub async fn accept(node: Rc<Node>, listener: TcpListener) {
    let mut complained = false;
    loop {
        match listener.accept().await.and_then(|(stream, _)| stream.into_std()) {
            Ok(accepted) => {
                complained = false;
                let frontend = node.shared.idlest_frontend();
                node.shared.connections(frontend).fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                node.hand_over(frontend, accepted);
            }
            Err(error) => {
                // Mostly: no file descriptor is left. Some will come back.
                if !std::mem::replace(&mut complained, true) {
                    tracing::warn!(%error, "cannot accept connections; trying on");
                }
                runtime::sleep(limits::ACCEPT_RETRY).await;
            }
        }
    }
}

/// A connection's socket, as HTTP/2 reads and writes it.
pub struct Io {
    stream: TcpStream,
    turn: Rc<Turn>,
    /// Written and not sent yet.
    held_back: Vec<u8>,
}

/// What a connection has read and written, in all and in this turn of its task.
///
/// The caps of a turn are its fairness to other connections; and HTTP/2 counts small frames that were
/// read and not yet consumed against a budget, so what was read must be consumed in between. A call
/// that cannot keep up holds the reading.
#[derive(Debug)]
pub struct Turn {
    total: Cell<u64>,
    last_read: Cell<Instant>,
    read: Cell<usize>,
    written: Cell<usize>,
    /// Something was left unread or unwritten for the sake of a cap.
    is_capped: Cell<bool>,
    /// Calls that hold the reading.
    holds: Cell<usize>,
    /// Something may be there that was not read for the sake of a hold.
    is_owed: Cell<bool>,
}

impl Default for Turn {
    fn default() -> Self {
        Turn {
            total: Cell::new(0),
            last_read: Cell::new(Instant::now()),
            read: Cell::new(0),
            written: Cell::new(0),
            is_capped: Cell::new(false),
            holds: Cell::new(0),
            is_owed: Cell::new(false),
        }
    }
}

/// As long as it lives nothing more is read from the connection. Only for what waits for the broker itself: the
/// client cannot be heard meanwhile.
pub struct Hold(Rc<Turn>);

impl Hold {
    pub fn new(turn: &Rc<Turn>) -> Self {
        turn.holds.set(turn.holds.get() + 1);
        Hold(turn.clone())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holds.set(self.0.holds.get() - 1);
    }
}

impl Turn {
    /// The connection's task has its turn anew.
    pub fn begin(&self) {
        self.read.set(0);
        self.written.set(0);
        self.is_capped.set(false);
    }

    /// Bytes read since the connection began.
    pub fn total(&self) -> u64 {
        self.total.get()
    }

    /// When something was read, or the connection began.
    pub fn last_read(&self) -> Instant {
        self.last_read.get()
    }

    pub fn is_held(&self) -> bool {
        self.holds.get() > 0
    }

    /// Whether what a hold kept from being read may be read now: told once.
    pub fn resumes(&self) -> bool {
        !self.is_held() && self.is_owed.take()
    }

    /// Whether a cap kept something from being read or written.
    pub fn is_capped(&self) -> bool {
        self.is_capped.get()
    }

    /// Whether so much was written that others come first.
    pub fn has_written_enough(&self) -> bool {
        self.written.get() >= limits::WRITE_TURN_BYTES
    }

    /// Whether more may be read now.
    fn may_read(&self) -> bool {
        if self.is_held() {
            self.is_owed.set(true);
            return false;
        }
        let has_room = self.read.get() < limits::READ_TURN_BYTES;
        if !has_room {
            self.is_capped.set(true);
        }
        has_room
    }

    /// Ready while more may be written; the turn that is over for others comes back by itself.
    fn poll_write(&self) -> Poll<()> {
        if self.has_written_enough() {
            self.is_capped.set(true);
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn has_written(&self, count: usize) {
        self.written.set(self.written.get() + count);
    }

    fn has_read(&self, count: usize) {
        self.read.set(self.read.get() + count);
        self.total.set(self.total.get() + count as u64);
        self.last_read.set(Instant::now());
    }
}

impl Io {
    /// Takes an accepted connection onto this executor.
    pub fn new(accepted: Accepted, turn: Rc<Turn>) -> io::Result<Self> {
        accepted.set_nodelay(true)?;
        SockRef::from(&accepted).set_tcp_user_timeout(Some(limits::TCP_USER_TIMEOUT))?;
        Ok(Io { stream: TcpStream::from_std(accepted)?, turn, held_back: Vec::new() })
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.turn.may_read() {
            return Poll::Pending;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.turn.has_read(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

/// Writes are gathered. Not offered to HTTP/2 is to gather pieces itself (`is_write_vectored`): it would then send every
/// payload of 256 bytes and more in a call of its own, where else it copies those below 1 KiB together.
impl AsyncWrite for Io {
    /// What is small waits for what follows it, or for the flush that HTTP/2 ends with: the head of a frame and its
    /// payload come one after the other, and each call of the system sends a packet.
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.held_back.len() + buf.len() <= limits::HELD_BACK_BYTES {
            self.held_back.extend_from_slice(buf);
            return Poll::Ready(Ok(buf.len()));
        }
        self.poll_send(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held_back.is_empty() {
            ready!(self.poll_send(cx, &[]))?;
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Io {
    /// Sends what was held back and as much of `buf` as can be sent. Ready with the bytes of `buf` that were, above zero
    /// where it is not empty.
    fn poll_send(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.turn.poll_write());
            let stream = Pin::new(&mut self.stream);
            let held_back = self.held_back.len();
            let sent = match (held_back, buf.len()) {
                (0, _) => ready!(stream.poll_write(cx, buf))?,
                (_, 0) => ready!(stream.poll_write(cx, &self.held_back))?,
                _ => {
                    let pieces = [IoSlice::new(&self.held_back), IoSlice::new(buf)];
                    ready!(stream.poll_write_vectored(cx, &pieces))?
                }
            };
            self.turn.has_written(sent);
            self.held_back.drain(..sent.min(held_back));
            if buf.is_empty() || sent > held_back {
                return Poll::Ready(Ok(sent.saturating_sub(held_back)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::AsyncReadExt;

    use super::*;

    /// Runs `body` with the broker's end of a connection, its turn, and the client's end.
    fn connected<F: Future<Output = ()>>(body: impl FnOnce(Io, Rc<Turn>, TcpStream) -> F) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        runtime.block_on(async {
            let listener = adopt(StdListener::bind("127.0.0.1:0").expect("a port")).expect("a listener");
            let client =
                TcpStream::connect(listener.local_addr().expect("it listens")).await.expect("it listens");
            let (accepted, _) = listener.accept().await.expect("a client has come");
            let turn = Rc::<Turn>::default();
            let io = Io::new(accepted.into_std().expect("a socket"), turn.clone()).expect("a socket");
            body(io, turn, client).await;
        });
    }

    fn read(io: &mut Io, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut bytes = [0; 8192];
        let mut buf = ReadBuf::new(&mut bytes);
        Pin::new(io).poll_read(cx, &mut buf).map_ok(|()| buf.filled().len())
    }

    #[test]
    fn a_turn_reads_so_much_and_leaves_the_rest_to_the_next() {
        connected(|mut io, turn, mut client| async move {
            const SENT: usize = 3 * limits::READ_TURN_BYTES;
            let sends = async {
                use tokio::io::AsyncWriteExt;
                client.write_all(&[1; SENT]).await.expect("it is read");
            };
            let reads = async {
                while turn.total() < SENT as u64 {
                    turn.begin();
                    let before = turn.total();
                    poll_fn(|cx| {
                        while read(&mut io, cx)?.is_ready() {}
                        // As its task does: what a cap has left brings no wake of its own.
                        if turn.total() > before { Poll::Ready(io::Result::Ok(())) } else { Poll::Pending }
                    })
                    .await
                    .expect("there is more");
                    let count = (turn.total() - before) as usize;
                    assert!(count < limits::READ_TURN_BYTES + 8192);
                    assert_eq!(turn.is_capped(), count >= limits::READ_TURN_BYTES);
                }
            };
            tokio::join!(sends, reads);
        });
    }

    #[test]
    fn a_turn_writes_so_much_and_leaves_the_rest_to_the_next() {
        connected(|mut io, turn, mut client| async move {
            let piece = vec![2; limits::WRITE_TURN_BYTES / 8];
            let drains = async {
                let mut bytes = vec![0; 1 << 20];
                while client.read(&mut bytes).await.expect("it is connected") > 0 {}
            };
            let writes = async {
                for _ in 0..3 {
                    turn.begin();
                    let mut written = 0;
                    while !turn.has_written_enough() {
                        let slices = [IoSlice::new(&piece), IoSlice::new(&piece)];
                        let wrote = poll_fn(|cx| Pin::new(&mut io).poll_write_vectored(cx, &slices));
                        written += wrote.await.expect("it is connected");
                    }
                    assert!(written < limits::WRITE_TURN_BYTES + 2 * piece.len());
                    assert!(!turn.is_capped());
                    let one_more =
                        poll_fn(|cx| Poll::Ready(Pin::new(&mut io).poll_write(cx, &piece).is_pending()));
                    assert!(one_more.await && turn.is_capped());
                }
                drop(io);
            };
            tokio::join!(drains, writes);
        });
    }

    #[test]
    fn what_a_hold_has_kept_back_is_told_once_it_is_gone() {
        connected(|mut io, turn, _client| async move {
            let holds = [Hold::new(&turn), Hold::new(&turn)];
            let is_kept_back = poll_fn(|cx| Poll::Ready(read(&mut io, cx).is_pending())).await;
            assert!(is_kept_back);
            for hold in holds {
                assert!(turn.is_held() && !turn.resumes());
                drop(hold);
            }
            assert!(!turn.is_capped(), "nobody has had more than its turn");
            assert!(turn.resumes() && !turn.resumes());
        });
    }
}
