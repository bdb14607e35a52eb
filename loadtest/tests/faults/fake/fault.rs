//! What a fake broker does wrong.

/// The messages that a fault strikes, counted from 0 over all that are published to the broker.
pub const STRUCK: [u64; 3] = [1, 4, 7];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Confirmed, and delivered to nobody.
    Lose,
    /// Delivered twice to the member whose turn it is.
    Double,
    /// Delivered to two members of the group; a unary ack of it is answered when neither holds it any longer.
    TwoHolders,
    /// In a SINGLETON group, delivered to the member behind the active one, as if that were active too.
    TwoActive,
    /// Delivered again after it was acked.
    ForgetAck,
    /// Taken from its holder by the ack, which is answered as if there had been nothing to settle.
    DenyAck,
    /// Delivered after the message that follows it.
    Reorder,
    /// Delivered to the next group as well.
    Misdeliver,
    /// Delivered as the second attempt, the first time.
    Misnumber,
    /// Confirmed as if nobody had heard it.
    Miscount,
    /// Delivered with another sequence number in its payload.
    Garble,
    /// Refused, which is no fault at all.
    Refuse,
    /// Every publish is refused.
    RefuseAll,
    /// Refused, and delivered all the same.
    Ghost,
    /// Delivered, and its publish is never answered.
    NeverConfirm,
    /// What a member held that leaves is gone with it.
    BuryWithMember,
    /// What a member held that leaves comes to others in the opposite order.
    TurnRound,
    /// What a member held that leaves comes to others with its old attempt.
    ForgetAttempt,
    /// PublishStream is not there.
    NoStream,
    /// The first message struck is the broker's end: all connections are closed.
    Die,
    /// With the first message struck the broker stops doing anything, and keeps its connections.
    Freeze,
    /// It accepts connections and never says a word.
    Mute,
}
