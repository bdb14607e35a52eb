//! How a member lives, and the ways in which it dies.

use std::convert::Infallible;
use std::process::Stdio;
use std::rc::Rc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, mpsc};
use tokio::task::{JoinHandle, spawn_local};

use super::member::serve;
use super::victim;
use super::word::{Meaningless, Word};
use super::{Mode, Way};
use crate::client::Connection;
use crate::failure::{Doing, Failure};

/// What a member, by its number, said; or why it ended by itself.
pub struct Heard {
    pub number: u32,
    pub said: Result<Vec<Word>, Failure>,
}

pub type Mouth = mpsc::UnboundedSender<Heard>;

/// What every member of a group needs.
pub struct Home {
    pub address: String,
    pub topic: String,
    pub mode: Mode,
    /// That of all whose streams will be cancelled.
    pub shared: Rc<Connection>,
}

/// A living member.
pub enum Body {
    /// Its stream is cancelled when its task is dropped.
    Stream {
        task: JoinHandle<()>,
        hold: Rc<Notify>,
    },
    Connection {
        connection: Rc<Connection>,
        hold: Rc<Notify>,
    },
    /// Killed when it is dropped.
    Process {
        child: Box<Child>,
        input: ChildStdin,
    },
}

impl Body {
    /// A member that will die this way. It joins the group when it can.
    pub async fn begin(way: Way, home: &Home, number: u32, mouth: &Mouth) -> Result<Body, Failure> {
        match way {
            Way::Process => process(home, number, mouth.clone()),
            Way::Cancel => {
                let (task, hold) = task(Rc::clone(&home.shared), home, number, mouth.clone());
                Ok(Body::Stream { task, hold })
            }
            Way::Cut => {
                let connection = Rc::new(Connection::open(&home.address).await.doing("connecting a member")?);
                let (_, hold) = task(Rc::clone(&connection), home, number, mouth.clone());
                Ok(Body::Connection { connection, hold })
            }
        }
    }

    /// Tells it to ack nothing from now on; it says when it has heard.
    pub async fn hold(&mut self) -> Result<(), Failure> {
        match self {
            Body::Stream { hold, .. } | Body::Connection { hold, .. } => hold.notify_one(),
            Body::Process { input, .. } => {
                input.write_all(b"h").await.doing("telling a member's process to hold")?
            }
        }
        Ok(())
    }

    pub fn kill(self) -> Result<(), Failure> {
        match self {
            Body::Stream { task, .. } => task.abort(),
            Body::Connection { connection, .. } => connection.cut(),
            Body::Process { mut child, input } => {
                child.start_kill().doing("killing a member's process")?;
                spawn_local(async move {
                    // So that it leaves no zombie; its end is certain.
                    let _ = child.wait().await;
                    drop(input);
                });
            }
        }
        Ok(())
    }
}

fn task(connection: Rc<Connection>, home: &Home, number: u32, mouth: Mouth) -> (JoinHandle<()>, Rc<Notify>) {
    let hold = Rc::new(Notify::new());
    let told = Rc::clone(&hold);
    let open = home.mode.open(&home.topic);
    let task = spawn_local(async move {
        let say = |words| {
            // The line listens for as long as this runs.
            let _ = mouth.send(Heard { number, said: Ok(words) });
            Ok(())
        };
        let Err(failure) = serve(&connection, open, &told, say).await;
        let _ = mouth.send(Heard { number, said: Err(failure) });
    });
    (task, hold)
}

fn process(home: &Home, number: u32, mouth: Mouth) -> Result<Body, Failure> {
    let program = std::env::current_exe().doing("finding this program")?;
    let mut child = Command::new(program)
        .args(victim::Options::arguments(&home.address, &home.topic, home.mode))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .doing("starting a member's process")?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let no_pipes = || Failure::Unexpected("a member's process has no pipes".into());
    let (input, output) = pipes.ok_or_else(no_pipes)?;
    spawn_local(async move {
        let Err(failure) = relay(output, number, &mouth).await;
        let _ = mouth.send(Heard { number, said: Err(failure) });
    });
    Ok(Body::Process { child: Box::new(child), input })
}

/// Hands on what a process says, until it says nothing more.
async fn relay(output: ChildStdout, number: u32, mouth: &Mouth) -> Result<Infallible, Failure> {
    let mut lines = BufReader::new(output).lines();
    while let Some(line) = lines.next_line().await.doing("listening to a member's process")? {
        let no_word = |error: Meaningless| Failure::Unexpected(error.to_string());
        let word = line.parse().map_err(no_word)?;
        let _ = mouth.send(Heard { number, said: Ok(vec![word]) });
    }
    Err(Failure::Unexpected("a member's process ended by itself".into()))
}
