//! Every bound of the broker, once. Bounds are checked against each other at compile time.
//!
//! A bound that a user can change is a default here and an option in `config`.

use std::time::Duration;

/// Longest topic, in bytes.
pub const TOPIC_BYTES: usize = 1024;

/// Longest pattern, in bytes.
pub const PATTERN_BYTES: usize = 256;
/// Most `*` in one pattern, after runs of stars are collapsed.
pub const PATTERN_STARS: usize = 16;
/// Most alternatives in one `{...}` group.
pub const BRACE_ALTERNATIVES: usize = 16;
/// Deepest nesting of `{...}` groups.
pub const BRACE_DEPTH: usize = 2;
/// Most plain patterns that the braces of one pattern may expand to.
pub const BRACE_EXPANSIONS: usize = 64;
/// Most characters of all the patterns together that the braces of one pattern expand to; a class, a `?` or a `*` is one.
pub const EXPANDED_CHARACTERS: usize = 2048;
/// Most elements between two stars where the segment holds a `?` or a class.
pub const SEGMENT_ELEMENTS: usize = 64;
/// Most ranges (or single characters) in one class.
pub const CLASS_RANGES: usize = 32;
/// Most patterns of one subscription.
pub const PATTERNS_PER_SUBSCRIPTION: usize = 256;
/// A pattern without a literal run of this many bytes is unselective (`*` alone is not counted).
pub const SELECTIVE_RUN_BYTES: usize = 3;
/// Most unselective patterns on one shard, each expansion of braces counted.
pub const UNSELECTIVE_PATTERNS: usize = 128;
/// Most patterns on one shard that only wildcards and short texts tell apart, each expansion of braces counted.
pub const SIMILAR_PATTERNS: usize = 512;
/// So many of these are alike by chance; what comes to them is counted all together,
pub const ALIKE_PATTERNS: usize = 4;
/// and there are at most so many of it on one shard: some hundreds of literal texts may lie in one topic.
pub const CROWDED_PATTERNS: usize = 8192;
/// Most distinct patterns on one shard.
pub const DISTINCT_PATTERNS: usize = 1_000_000;

/// Most topics for which a shard remembers the patterns that match,
pub const CACHED_TOPICS: usize = 32 * 1024;
/// most bytes that they and the answers take, beside some 64 a topic,
pub const CACHE_BYTES: usize = 8 * 1024 * 1024;
/// and most patterns of an answer; what more match is found anew each time.
pub const CACHED_IDS: usize = 1024;
/// A merge of the pattern index is due with so many changes since the last, or with an eighth of what it holds,
pub const MERGE_CHANGES: usize = 65_536;
/// or with more than these while the shard is idle.
pub const IDLE_MERGE_CHANGES: usize = 1024;

/// Longest subscription_id, consumer_group, message_id or system_id that a client may send, in bytes.
pub const ID_BYTES: usize = 256;

/// What a gRPC client accepts as one message by default; an event that carries a message stays within it.
pub const EVENT_BYTES: usize = 4 * 1024 * 1024;
/// Room in an event for what differs by delivery (ids, attempt, epoch) and for framing.
pub const EVENT_OVERHEAD_BYTES: usize = 512;
/// Most bytes of messages in one batch event, tag and length of the batch left out.
pub const BATCH_BYTES: usize = EVENT_BYTES - 16;
/// Largest message: topic, message_id, headers and payload as they are encoded in an event.
pub const MESSAGE_BYTES: usize = EVENT_BYTES - EVENT_OVERHEAD_BYTES;
/// Largest request as a whole, a batch included.
pub const REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Longest error text sent to a client, in bytes: it travels in HTTP/2 trailers, percent-encoded.
pub const ERROR_TEXT_BYTES: usize = 1024;

/// Default and ceiling of messages waiting in one subscription; bytes are meant to be the limit.
pub const MAX_PENDING: u64 = 10_000_000;
/// Default of the bytes waiting in one subscription.
pub const MAX_PENDING_BYTES: u64 = 1024 * 1024 * 1024;
/// What a waiting message costs beside its own bytes (bookkeeping, allocation headers), in bytes.
pub const MESSAGE_OVERHEAD_BYTES: u64 = 160;
/// What each copy of a message takes in its subscription, beside the message itself, in bytes.
pub const COPY_OVERHEAD_BYTES: u64 = 48;
/// What a copy takes beside that while it is in flight, in bytes.
pub const IN_FLIGHT_OVERHEAD_BYTES: u64 = 128;
/// Largest cost of one message; what waits in a subscription may not be bounded below it.
pub const MESSAGE_COST: u64 = (MESSAGE_BYTES + PUBLISHED_AT_BYTES) as u64 + MESSAGE_OVERHEAD_BYTES;
/// What the time of publishing adds to a message; no limit of a message counts it.
const PUBLISHED_AT_BYTES: usize = 20;
/// Largest max_in_flight of a member.
pub const MAX_IN_FLIGHT: u32 = 1_000_000;

/// Messages that may be between a shard and the stream of one member, not yet taken by its connection.
pub const MEMBER_WINDOW_MESSAGES: u32 = 1024;
/// Bytes of the same; one message more than this may be on its way.
pub const MEMBER_WINDOW_BYTES: u64 = 256 * 1024;

/// Events that a stream may have unread when it resigns, each of which brings more.
pub const UNREAD_EVENTS: usize = 4096;

/// Publishes that all frontends together may have outstanding at the shards.
const OUTSTANDING_PUBLISHES: u64 = 8192;
/// Bytes of the same.
const OUTSTANDING_PUBLISH_BYTES: u64 = 64 * 1024 * 1024;

/// Messages and bytes that each of so many frontends may have outstanding: its share, and never less
/// than a few messages and the largest one.
pub fn outstanding(frontends: usize) -> (u64, u64) {
    let frontends = frontends as u64;
    ((OUTSTANDING_PUBLISHES / frontends).max(64), (OUTSTANDING_PUBLISH_BYTES / frontends).max(MESSAGE_COST))
}

/// Messages that one stream may start before others that wait for the same credits get theirs: one at a time each would
/// cross to the shards alone.
pub const CREDITS_IN_ONE_GO: usize = 64;
/// Messages of one stream or batch that go to a shard as one input: so many at most that one input is short work,
pub const RUN_MESSAGES: usize = CREDITS_IN_ONE_GO;
/// and until they have these bytes together.
pub const RUN_BYTES: u64 = 256 * 1024;
/// Acks of one stream that go to its shard as one input.
pub const ACKS_IN_ONE_GO: usize = 64;
/// Requests of one stream of publishes that are read in one turn, before others get theirs.
pub const PUBLISH_STREAM_TURN: usize = 1024;
/// Failures told in one confirm; those that follow come in the next.
pub const CONFIRM_FAILURES: usize = 1024;

/// Batches that a ring between two executors holds.
pub const RING_SLOTS: usize = 128;
/// Messages, deliveries and other items that a pump takes from its rings in one turn, before connections get theirs.
pub const PUMP_TURN_ITEMS: usize = 1024;
/// Messages and deliveries that one turn deals with in shards whose own executors sleep; where it has more for them, all
/// go by ring and wake them: one batch is then less work.
pub const ERRANDS_IN_ONE_TURN: usize = 2;
/// Subscriptions that a message is handed out to in one go, before connections and other publishes get their turn.
/// Some 250 deliveries are a few hundred microseconds of work; what they write still goes out in few system calls.
pub const FAN_OUT_SLICE: usize = 256;

/// A pump looks around at least this often, whatever wakes it or fails to,
pub const HEARTBEAT: Duration = Duration::from_millis(500);
/// and this often until its executor has done nothing for so long, and counts as idle.
pub const LULL: Duration = Duration::from_millis(5);

/// Executors that one process may have: an id holds the number of its executor in 8 bits.
pub const EXECUTORS: usize = 256;

/// Concurrent streams advertised to each connection.
pub const STREAMS_PER_CONNECTION: u32 = 16_384;
/// Subscribe streams on one connection, so that Publish and Ack always find a free stream.
pub const SUBSCRIPTIONS_PER_CONNECTION: usize = 10_000;
/// Streams that a client may open and reset within one turn of reading: more is a flood, and the
/// connection is closed with ENHANCE_YOUR_CALM.
pub const RESET_STREAMS_PER_TURN: usize = 256;
/// Largest header list of one call.
pub const HEADER_LIST_BYTES: u32 = 16 * 1024;
/// Receive window of one stream: wide enough that it never throttles a publisher.
pub const STREAM_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Receive window of one connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 16 * 1024 * 1024;
/// Bytes that HTTP/2 may buffer for sending on one stream.
pub const STREAM_SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes with which a connection has read enough in one turn: others have theirs then.
pub const READ_TURN_BYTES: usize = 64 * 1024;
/// Bytes that it may write in one turn.
pub const WRITE_TURN_BYTES: usize = 256 * 1024;
/// Calls of a connection that run before what they wrote goes out, and
pub const TASKS_IN_ONE_GO: usize = 512;
/// how often that may be in one turn.
pub const ROUNDS_IN_ONE_TURN: usize = 4;
/// Bytes that are not sent before others follow or nothing more does.
pub const HELD_BACK_BYTES: usize = 4 * 1024;
/// What small frames that nobody has taken yet may cost a connection, before it is closed for a flood: each 256 bytes,
/// less its own.
pub const SMALL_FRAMES_BUDGET: usize = 16 * 1024 * 1024;
/// Bytes of events that a stream is given at a time; then others on its connection have theirs.
pub const EVENTS_CHUNK_BYTES: usize = 32 * 1024;
/// Connections waiting to be accepted.
pub const LISTEN_BACKLOG: i32 = 1024;

/// Shortest time after which a delivery may be taken back.
pub const ACK_TIMEOUT: Duration = Duration::from_millis(1);
/// A stream that has not said `open` by then is ended.
pub const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// How long what a client still sends to a call that has ended is read and thrown away.
pub const DISCARD: Duration = Duration::from_secs(10);
/// A connection that has not sent an HTTP/2 preface by then is closed.
pub const PREFACE_TIMEOUT: Duration = Duration::from_secs(20);
/// A connection that has been silent for this long is asked for a sign of life,
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(12);
/// and closed when none comes within this.
pub const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(12);
/// TCP_USER_TIMEOUT: how long written bytes may stay unacknowledged.
pub const TCP_USER_TIMEOUT: Duration = Duration::from_secs(24);
/// A dead peer is noticed within this, with no packet of its own.
pub const DEAD_PEER_NOTICED: Duration = Duration::from_secs(30);
/// How long an accept loop waits when the process has no file descriptor left.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// How long connections may take to flush their last words at shutdown.
pub const GOODBYE: Duration = Duration::from_millis(1500);
/// Default of `--drain-timeout`.
pub const DRAIN_TIMEOUT: &str = "5s";
/// Longest duration that an option takes.
pub const OPTION_DURATION: Duration = Duration::from_secs(24 * 3600);

const _: () = {
    assert!(MESSAGE_BYTES + EVENT_OVERHEAD_BYTES <= EVENT_BYTES);
    assert!(CONFIRM_FAILURES * (ERROR_TEXT_BYTES + 32) <= EVENT_BYTES);
    assert!(PUBLISHED_AT_BYTES * 2 < EVENT_OVERHEAD_BYTES);
    assert!(EVENT_BYTES <= REQUEST_BYTES);
    // A head holds a system_id with its suffix, attempt and epoch.
    assert!(EVENT_OVERHEAD_BYTES >= 128);
    assert!(SUBSCRIPTIONS_PER_CONNECTION + 1024 <= STREAMS_PER_CONNECTION as usize);
    assert!(STREAM_WINDOW_BYTES <= CONNECTION_WINDOW_BYTES);
    assert!(KEEPALIVE_INTERVAL.as_secs() + KEEPALIVE_TIMEOUT.as_secs() < DEAD_PEER_NOTICED.as_secs());
    assert!(TCP_USER_TIMEOUT.as_secs() < DEAD_PEER_NOTICED.as_secs());
    assert!(PATTERN_BYTES <= TOPIC_BYTES);
    // By default bytes are the limit of what waits, however small the messages.
    assert!(MAX_PENDING * MESSAGE_OVERHEAD_BYTES > MAX_PENDING_BYTES);
    // HTTP/2 counts small unread DATA frames against a budget: what one turn of reading can admit must
    // stay far below (docs/architecture.md, Reading).
    assert!(READ_TURN_BYTES / 10 * 256 <= SMALL_FRAMES_BUDGET / 8);
};
