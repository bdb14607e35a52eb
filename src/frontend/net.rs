//! Sockets: listening, accepting, their options, and reading in turns. Knows glommio.

use std::cell::Cell;
use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, TcpListener as StdListener, ToSocketAddrs};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use futures_util::io::{AsyncRead, AsyncWrite};
use glommio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::io::ReadBuf;

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
            match bind_patiently(socket, listeners[before..].first()) {
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
    matches!(error.raw_os_error(), Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT))
}

/// A broker that has just ended holds its port for some milliseconds more, until the kernel has taken
/// its io_uring apart: a restart must not fail for that.
fn bind_patiently(address: SocketAddr, sibling: Option<&StdListener>) -> io::Result<StdListener> {
    let deadline = Instant::now() + limits::PORT_PATIENCE;
    loop {
        match bind(address, sibling) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(limits::PORT_RETRY);
            }
            result => return result,
        }
    }
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

/// Accepts as long as the process lives, and deals connections out to the idlest frontends.
pub async fn accept(node: Rc<Node>, listener: StdListener) {
    // SAFETY: the descriptor is a listening socket and is given away here.
    let listener = unsafe { TcpListener::from_raw_fd(listener.into_raw_fd()) };
    let mut complained = false;
    loop {
        match listener.shared_accept().await {
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
    /// The socket had nothing more in this turn.
    is_drained: Cell<bool>,
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
            is_drained: Cell::new(false),
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
        self.is_drained.set(false);
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

    /// Bytes that may be read now.
    fn room(&self) -> Option<usize> {
        if self.is_held() {
            self.is_owed.set(true);
            return None;
        }
        let room = limits::READ_TURN_BYTES.saturating_sub(self.read.get());
        if room == 0 {
            self.is_capped.set(true);
        }
        // What was empty a moment ago need not be asked again in the same turn: its wake is on its way.
        (room > 0 && !self.is_drained.get()).then_some(room)
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
    /// Takes a connection onto this executor.
    pub fn new(accepted: Accepted, turn: Rc<Turn>) -> io::Result<Self> {
        let stream = accepted.bind_to_executor();
        let io = Io { stream, turn, held_back: Vec::new() };
        let fd = io.socket();
        SockRef::from(&fd).set_tcp_nodelay(true)?;
        SockRef::from(&fd).set_tcp_user_timeout(Some(limits::TCP_USER_TIMEOUT))?;
        Ok(io)
    }

    fn socket(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the stream's, which outlives the borrow.
        unsafe { BorrowedFd::borrow_raw(self.stream.as_raw_fd()) }
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        self.stream.peer_addr().ok()
    }
}

impl tokio::io::AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(most) = self.turn.room() else { return Poll::Pending };
        // SAFETY: the bytes are only written to, by recv(2), and exactly those are declared filled.
        let count = unsafe {
            let room = buf.unfilled_mut();
            let room = std::slice::from_raw_parts_mut(room.as_mut_ptr().cast::<u8>(), room.len().min(most));
            let Poll::Ready(count) = Pin::new(&mut self.stream).poll_read(cx, room) else {
                self.turn.is_drained.set(true);
                return Poll::Pending;
            };
            let count = count?;
            buf.assume_init(count);
            count
        };
        buf.advance(count);
        self.turn.has_read(count);
        Poll::Ready(Ok(()))
    }
}

impl tokio::io::AsyncWrite for Io {
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
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

impl Io {
    /// Sends what was held back and as much of `buf` as can be sent. Ready with the bytes of `buf` that were, above zero
    /// where it is not empty.
    fn poll_send(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.turn.has_written_enough() {
            self.turn.is_capped.set(true);
            return Poll::Pending;
        }
        while !self.held_back.is_empty() {
            let slices = [IoSlice::new(&self.held_back), IoSlice::new(buf)];
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            let fd = self.socket();
            let sent = SockRef::from(&fd).send_vectored_with_flags(&slices, flags);
            let sent = match sent {
                // The runtime knows how to wait.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    ready!(Pin::new(&mut self.stream).poll_write(cx, &self.held_back))?
                }
                sent => sent?,
            };
            self.turn.has_written(sent);
            let held_back = self.held_back.len();
            self.held_back.drain(..sent.min(held_back));
            if buf.is_empty() || sent > held_back {
                return Poll::Ready(Ok(sent.saturating_sub(held_back)));
            }
        }
        let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.turn.has_written(sent);
        Poll::Ready(Ok(sent))
    }
}
