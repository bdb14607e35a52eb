use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use h2::{Ping, PingPong};

use super::net::Turn;
use crate::limits;
use crate::shard::runtime;

/// Asks a silent peer for signs of life. Returns when none came in time, or the connection has ended.
pub async fn keepalive(mut pings: PingPong, turn: Rc<Turn>) {
    loop {
        let silence = silence_since(turn.last_read());
        if let Some(left) = limits::KEEPALIVE_INTERVAL.checked_sub(silence)
            && !left.is_zero()
        {
            if let Wait::Closed = wait(&mut pings, left).await {
                return;
            }
            continue;
        }
        let asked = Instant::now();
        if pings.send_ping(Ping::opaque()).is_err() {
            return;
        }
        loop {
            // Whatever comes is a sign; and while the broker itself does not read it cannot hear one.
            let heard = if turn.is_held() { Instant::now() } else { turn.last_read().max(asked) };
            let left = limits::KEEPALIVE_TIMEOUT.saturating_sub(silence_since(heard));
            if left.is_zero() {
                return;
            }
            match wait(&mut pings, left).await {
                Wait::Answered => break,
                Wait::Closed => return,
                Wait::TimeOver => {}
            }
        }
    }
}

fn silence_since(moment: Instant) -> Duration {
    Instant::now().saturating_duration_since(moment)
}

enum Wait {
    Answered,
    TimeOver,
    Closed,
}

async fn wait(pings: &mut PingPong, span: Duration) -> Wait {
    let mut timer = pin!(runtime::sleep(span));
    poll_fn(|cx| match pings.poll_pong(cx) {
        Poll::Ready(Ok(_)) => Poll::Ready(Wait::Answered),
        Poll::Ready(Err(_)) => Poll::Ready(Wait::Closed),
        Poll::Pending => timer.as_mut().poll(cx).map(|()| Wait::TimeOver),
    })
    .await
}
