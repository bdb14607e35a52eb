use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{CommandResult, descriptors};
use crate::admin::{Described, HealthSwitch, ServerFacts, make_services};
use crate::config::ServeOptions;
use crate::core::{CoreConfig, Effect};
use crate::frontend::convert::Bounds;
use crate::frontend::{Frontend, FrontendCounters, net, serve_with};
use crate::limits;
use crate::memory::Memory;
use crate::ring::{self, Doorbell, Inlet, Mesh, Port};
use crate::shard::{Clock, Frame, Layout, Merger, Node, NodeConfig, Phase, Shared, runtime};

/// How often the control thread looks whether a drain is done.
const LOOK: Duration = Duration::from_millis(5);
/// How long all executors may take to start.
const START: Duration = Duration::from_secs(10);

/// Runs the broker until it is told to stop.
pub fn serve(options: ServeOptions) -> CommandResult {
    options.log.start();
    let allowed: Vec<_> =
        core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id).collect();
    let layout = Layout::new(options.shards, options.frontends, options.cores.as_deref(), &allowed)?;
    descriptors::make_room(layout.executors())?;
    // Signals are caught before anybody can connect.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let listeners = net::listen(&options.listen)?;
    let addresses: Vec<SocketAddr> =
        listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
    let control = start(&options, &layout, listeners)?;
    announce(&options, &layout, control.shared.memory.limit(), &addresses);
    let signal = signals.forever().next();
    tracing::info!(?signal, "draining; a second signal ends at once");
    control.stop(&options, &mut signals);
    Ok(())
}

/// What the control thread holds of the running broker.
struct Control {
    shared: Arc<Shared>,
    bells: Vec<Arc<Doorbell>>,
    health: HealthSwitch,
}

fn start(
    options: &ServeOptions,
    layout: &Layout,
    listeners: Vec<TcpListener>,
) -> Result<Control, Box<dyn std::error::Error>> {
    let memory = Memory::new(layout.executors(), options.memory_limit());
    let mesh = Mesh::new(layout.executors(), limits::RING_SLOTS);
    let bells = mesh.bells();
    let (outlets, inlets) = ring::rings(&bells[..layout.shards], &bells, limits::RING_SLOTS);
    let wall_clock = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let core = core_config(options, layout, wall_clock);
    let shared = Arc::new(Shared::new(layout, &core, outlets, &bells, options.drain_timeout, memory));
    let health = HealthSwitch::new();
    let facts = Arc::new(ServerFacts {
        layout: layout.clone(),
        max_pending_bytes: options.max_pending_bytes,
        started: Instant::now(),
        counters: (0..layout.frontends).map(|_| Arc::<FrontendCounters>::default()).collect(),
    });
    let blueprint = Blueprint {
        shared: shared.clone(),
        clock: Clock::start(),
        facts,
        described: Described::new()?,
        bounds: Bounds {
            max_message_bytes: options.max_message_bytes as usize,
            max_pending: options.max_pending,
        },
        wall_clock,
        merger: Merger::start()?,
        spin: options.spin,
    };
    let mut listeners = Some(listeners);
    let (started, all_started) = mpsc::channel();
    for (index, (port, inlet)) in mesh.into_ports().into_iter().zip(inlets).enumerate() {
        let blueprint = blueprint.clone();
        let health = health.server();
        // The first executor accepts for all.
        let listeners = listeners.take().unwrap_or_default();
        let started = started.clone();
        let main = move || async move {
            let node = blueprint.build(port, inlet, health);
            let accepts = listeners.into_iter().try_for_each(|listener| {
                runtime::spawn("accept", net::accept(node.clone(), net::adopt(listener)?));
                std::io::Result::Ok(())
            });
            runtime::spawn_pump(node.pump());
            let _ = started.send(accepts);
            std::future::pending().await
        };
        runtime::start(index, layout.cores[index], main)?;
    }
    let deadline = Instant::now() + START;
    for _ in 0..layout.executors() {
        let left = deadline.saturating_duration_since(Instant::now());
        all_started
            .recv_timeout(left)
            .map_err(|_| format!("the executors did not start within {START:?}"))?
            .map_err(|error| format!("cannot accept connections: {error}"))?;
    }
    Ok(Control { shared, bells, health })
}

fn core_config(options: &ServeOptions, layout: &Layout, wall_clock: Duration) -> CoreConfig {
    let frontends = layout.frontends as u64;
    let (messages, bytes) = limits::outstanding(layout.frontends);
    CoreConfig {
        epoch: wall_clock.as_micros() as u64,
        max_pending_bytes: options.max_pending_bytes,
        near_full_messages: frontends * messages,
        near_full_bytes: frontends * bytes,
        fan_out_slice: limits::FAN_OUT_SLICE,
    }
}

/// What every executor is built from.
#[derive(Clone)]
struct Blueprint {
    shared: Arc<Shared>,
    clock: Clock,
    facts: Arc<ServerFacts>,
    described: Described,
    bounds: Bounds,
    wall_clock: Duration,
    merger: Merger,
    spin: Duration,
}

impl Blueprint {
    /// On the executor's own thread.
    fn build(
        self,
        port: Port<Frame>,
        inlet: Inlet<Effect>,
        health: tonic_health::pb::health_server::HealthServer<tonic_health::server::HealthService>,
    ) -> std::rc::Rc<Node> {
        let me = port.me();
        Memory::enter(me);
        let Blueprint { shared, merger, clock, .. } = self;
        let node = Node::new(NodeConfig { port, inlet, merger, shared, clock, spin: self.spin });
        if let Some(counters) = self.facts.counters.get(me) {
            // In units of 100 ns: see NumberSource.
            let started = (self.wall_clock.as_nanos() / 100) as u64;
            let services = make_services(self.facts.clone(), health, self.described);
            let frontend =
                Frontend::new(node.clone(), self.bounds, counters.clone(), started, serve_with(services));
            runtime::spawn("dead letters", frontend.publish_dead_letters());
        }
        node
    }
}

impl Control {
    /// Drains, closes, and returns when the process may end.
    fn stop(&self, options: &ServeOptions, signals: &mut Signals) {
        self.health.not_serving();
        self.enter(Phase::Draining);
        if self.wait(options.drain_timeout, signals, |shared| shared.is_drained()) {
            return;
        }
        self.enter(Phase::Closing);
        self.wait(limits::GOODBYE, signals, |shared| shared.all_connections() == 0);
        let open = self.shared.all_connections();
        tracing::info!(connections_cut = open, "stopped");
    }

    fn enter(&self, phase: Phase) {
        self.shared.set_phase(phase);
        for bell in &self.bells {
            bell.ring();
        }
    }

    /// Until `done` or so long. Tells whether a second signal came.
    fn wait(&self, span: Duration, signals: &mut Signals, done: impl Fn(&Shared) -> bool) -> bool {
        let deadline = Instant::now() + span;
        while Instant::now() < deadline && !done(&self.shared) {
            if signals.pending().next().is_some() {
                return true;
            }
            std::thread::sleep(LOOK);
        }
        false
    }
}

/// Says on standard output where and how the broker runs, and what to do next.
fn announce(options: &ServeOptions, layout: &Layout, memory_limit: u64, addresses: &[SocketAddr]) {
    let mut text = format!("tinybroker {} is serving\n", env!("CARGO_PKG_VERSION"));
    for address in addresses {
        text += &format!("listening on {address}\n");
    }
    let Layout { shards, frontends, cores } = layout;
    text += &format!(
        "cores {cores:?}, {shards} shards, {frontends} frontends\n\
         limits: message {} bytes, waiting in one subscription {} messages or {} bytes, all messages {memory_limit} bytes\n",
        options.max_message_bytes, options.max_pending, options.max_pending_bytes
    );
    if let Some(address) = addresses.first() {
        text += &format!(
            "try it, each line in a terminal of its own:\n  \
             tinybroker sub 'jobs.*' --group workers --broker {address}\n  \
             tinybroker pub jobs.hello 'my first job' --broker {address}\n"
        );
    }
    // Nobody may be reading; the broker serves all the same.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
