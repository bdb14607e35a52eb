//! The tasks within the task of a connection: its calls.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use futures_util::future::LocalBoxFuture;
use futures_util::task::AtomicWaker;

/// A call, or what is left of one.
pub type Task = LocalBoxFuture<'static, ()>;

/// Puts tasks among those of a connection, from within them.
#[derive(Clone, Default)]
pub struct Spawner(Rc<RefCell<Vec<Task>>>);

impl Spawner {
    pub fn add(&self, task: impl Future<Output = ()> + 'static) {
        self.0.borrow_mut().push(Box::pin(task));
    }
}

/// What is to be done on one connection. However much that is, the connection's task is woken once; and not at all in
/// the midst of its turn, which looks here before it ends.
///
/// As a waker it is that of the connection itself: of its socket and its HTTP/2.
#[derive(Default)]
pub struct Agenda {
    /// Tasks that were woken, in that order.
    ready: Mutex<VecDeque<usize>>,
    /// HTTP/2 has something to read or to write.
    is_connection_due: AtomicBool,
    is_in_turn: AtomicBool,
    connection: AtomicWaker,
}

impl Agenda {
    /// The connection's task has its turn.
    pub fn begin_turn(&self, cx: &Context<'_>) {
        self.connection.register(cx.waker());
        self.is_in_turn.store(true, SeqCst);
    }

    /// Whatever comes from now on wakes the connection's task; what came before is to be looked for.
    pub fn end_turn(&self) {
        self.is_in_turn.store(false, SeqCst);
    }

    /// Whether HTTP/2 is to be looked after: told once.
    pub fn take_connection(&self) -> bool {
        self.is_connection_due.swap(false, SeqCst)
    }

    /// HTTP/2 is to be looked after in the next turn, and who calls this sees to it that there is one. To be woken instead
    /// would be a turn at once, before sockets and others have theirs.
    pub fn leave_connection(&self) {
        self.is_connection_due.store(true, SeqCst);
    }

    pub fn has_work(&self) -> bool {
        self.is_connection_due.load(SeqCst) || !self.lock_ready().is_empty()
    }

    fn lock_ready(&self) -> std::sync::MutexGuard<'_, VecDeque<usize>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        if !self.is_in_turn.load(SeqCst) {
            self.connection.wake();
        }
    }
}

impl Wake for Agenda {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_connection_due.store(true, SeqCst);
        self.ring();
    }
}

/// The waker of whatever task is at one place.
struct PlaceWaker {
    place: usize,
    is_ready: AtomicBool,
    agenda: Arc<Agenda>,
}

impl Wake for PlaceWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_ready.swap(true, SeqCst) {
            let mut ready = self.agenda.lock_ready();
            let is_first = ready.is_empty();
            ready.push_back(self.place);
            drop(ready);
            // The others behind the first are found with it.
            if is_first {
                self.agenda.ring();
            }
        }
    }
}

/// A task's waker that leaves a mark: so that a task which waits for several things need not look at all of them.
pub struct MarkedWaker {
    is_marked: AtomicBool,
    task: Waker,
}

impl MarkedWaker {
    /// Marked from the beginning.
    pub fn new(cx: &Context<'_>) -> Arc<Self> {
        Arc::new(MarkedWaker { is_marked: AtomicBool::new(true), task: cx.waker().clone() })
    }

    /// Whether it was woken: told once.
    pub fn take_mark(&self) -> bool {
        self.is_marked.load(SeqCst) && self.is_marked.swap(false, SeqCst)
    }
}

impl Wake for MarkedWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_marked.store(true, SeqCst);
        self.task.wake_by_ref();
    }
}

struct Place {
    task: Option<Task>,
    state: Arc<PlaceWaker>,
    waker: Waker,
}

/// All tasks of one connection.
///
/// A place and its waker serve one task after the other: a call allocates no more than its future. A wake that comes
/// late, for a task that is over, polls the next one in vain.
pub struct Tasks {
    places: Vec<Place>,
    free: Vec<usize>,
    /// Ready tasks that this turn has taken from the agenda.
    ready: VecDeque<usize>,
    new: Spawner,
    agenda: Arc<Agenda>,
}

/// Places kept where no task is left.
const KEPT_PLACES: usize = 256;

impl Tasks {
    pub fn new(agenda: Arc<Agenda>, new: Spawner) -> Self {
        Tasks { places: Vec::new(), free: Vec::new(), ready: VecDeque::new(), new, agenda }
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len() && self.new.0.borrow().is_empty()
    }

    /// Whether tasks wait that were ready before.
    pub fn has_work(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes tasks on. They run after those that are ready already.
    pub fn extend(&mut self, tasks: impl IntoIterator<Item = Task>) {
        self.take_ready();
        for task in tasks {
            let place = self.free.pop().unwrap_or_else(|| self.add_place());
            if let Some(slot) = self.places.get_mut(place) {
                slot.task = Some(task);
                self.ready.push_back(place);
            }
        }
    }

    /// Runs those that are ready, so many at most, and what they spawn.
    pub fn run(&mut self, most: usize) {
        self.take_ready();
        self.take_new();
        for _ in 0..most {
            let Some(place) = self.ready.pop_front() else { return };
            self.poll(place);
            self.take_new();
        }
    }

    fn take_ready(&mut self) {
        self.ready.append(&mut self.agenda.lock_ready());
    }

    fn take_new(&mut self) {
        if !self.new.0.borrow().is_empty() {
            let new = self.new.0.take();
            self.extend(new);
        }
    }

    fn add_place(&mut self) -> usize {
        let place = self.places.len();
        let state = PlaceWaker { place, is_ready: AtomicBool::new(false), agenda: self.agenda.clone() };
        let state = Arc::new(state);
        self.places.push(Place { task: None, waker: state.clone().into(), state });
        place
    }

    fn poll(&mut self, place: usize) {
        let Some(Place { task: slot @ Some(_), state, waker }) = self.places.get_mut(place) else { return };
        state.is_ready.store(false, SeqCst);
        let Some(task) = slot else { return };
        if task.as_mut().poll(&mut Context::from_waker(waker)).is_pending() {
            return;
        }
        *slot = None;
        self.free.push(place);
        if self.free.len() == self.places.len() && self.places.len() > KEPT_PLACES {
            (self.places, self.free) = Default::default();
        }
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        // Where the connection's task panicked some were never run: they hold what holds them.
        drop(self.new.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;
    use std::task::Poll;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    /// Tasks that wait, with the wakers that they left.
    fn waiting(tasks: &mut Tasks, count: usize) -> (Rc<RefCell<Vec<Waker>>>, Rc<Cell<usize>>) {
        let (wakers, polls) = (Rc::<RefCell<Vec<Waker>>>::default(), Rc::<Cell<usize>>::default());
        for _ in 0..count {
            let (wakers, polls) = (wakers.clone(), polls.clone());
            let mut is_first = true;
            let task: Task = Box::pin(poll_fn(move |cx| {
                polls.set(polls.get() + 1);
                if std::mem::take(&mut is_first) {
                    wakers.borrow_mut().push(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(())
            }));
            tasks.extend([task]);
        }
        tasks.run(count);
        (wakers, polls)
    }

    #[test]
    fn many_wakes_wake_the_connection_once_and_run_each_task_once() {
        let (agenda, woken) = (Arc::<Agenda>::default(), Arc::<Count>::default());
        let mut tasks = Tasks::new(agenda.clone(), Spawner::default());
        let (wakers, polls) = waiting(&mut tasks, 10);
        agenda.begin_turn(&Context::from_waker(&woken.clone().into()));
        agenda.end_turn();
        assert!(!agenda.has_work());
        wakers.borrow().iter().chain(wakers.borrow().iter()).for_each(Waker::wake_by_ref);
        assert_eq!(woken.0.load(SeqCst), 1);
        assert!(agenda.has_work());
        tasks.run(4);
        assert_eq!((polls.get(), tasks.has_work(), tasks.is_empty()), (14, true, false));
        tasks.run(100);
        assert_eq!((polls.get(), tasks.has_work(), tasks.is_empty()), (20, false, true));
        wakers.borrow().iter().for_each(Waker::wake_by_ref);
        tasks.run(100);
        assert_eq!(polls.get(), 20, "a late wake meets nobody");
    }

    #[test]
    fn what_comes_within_a_turn_is_found_at_its_end() {
        let (agenda, woken) = (Arc::<Agenda>::default(), Arc::<Count>::default());
        let mut tasks = Tasks::new(agenda.clone(), Spawner::default());
        let (wakers, _) = waiting(&mut tasks, 1);
        agenda.begin_turn(&Context::from_waker(&woken.clone().into()));
        wakers.borrow()[0].wake_by_ref();
        agenda.end_turn();
        assert!(agenda.has_work());
        assert_eq!(woken.0.load(SeqCst), 0);
        tasks.run(1);
        assert!(tasks.is_empty());
    }

    #[test]
    fn what_is_left_for_the_next_turn_brings_no_turn_at_once() {
        let (agenda, woken) = (Arc::<Agenda>::default(), Arc::<Count>::default());
        agenda.begin_turn(&Context::from_waker(&woken.clone().into()));
        // Also where the turn has looked for work a last time, and what comes wakes.
        agenda.end_turn();
        agenda.leave_connection();
        assert!(agenda.has_work());
        assert_eq!(woken.0.load(SeqCst), 0);
        Waker::from(agenda.clone()).wake();
        assert_eq!(woken.0.load(SeqCst), 1);
        assert!(agenda.take_connection() && !agenda.take_connection());
    }

    #[test]
    fn tasks_spawn_tasks() {
        let spawner = Spawner::default();
        let mut tasks = Tasks::new(Arc::default(), spawner.clone());
        let done = Rc::<Cell<bool>>::default();
        let (inner, is_done) = (spawner.clone(), done.clone());
        spawner.add(async move { inner.add(async move { is_done.set(true) }) });
        assert!(!tasks.is_empty());
        tasks.run(2);
        assert!(done.get() && tasks.is_empty());
    }
}
