//! Remembers what the content of a message costs, so that a long session is not counted again each turn.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use epitome_loop::{Block, Message, RawJson};

use crate::error_band::Amount;
use crate::kind_costs::ContentCost;

/// Costs by identity of the shared blocks.
///
/// A message is recognized by the address of its blocks. An entry holds a weak pointer, which keeps that
/// address from being used again and keeps the blocks from being changed in place, but does not keep the
/// content alive. Entries whose message is gone are swept out before the table would grow.
#[derive(Debug)]
pub(crate) struct MessageCache {
    costs: Mutex<Costs>,
    /// With as many entries as this none is added until some are swept out.
    most_messages: usize,
    /// The tool definitions that were counted last; a session rarely changes them.
    tools: Mutex<Option<(Weak<[RawJson]>, Amount)>>,
}

#[derive(Debug, Default)]
struct Costs {
    entries: HashMap<usize, Entry, BuildHasherDefault<AddressHasher>>,
    /// How many messages were asked for since the last sweep. A full table is swept only when there were as many
    /// of them as it has entries, so that a sweep costs no more than the questions before it.
    asked: usize,
}

#[derive(Debug)]
struct Entry {
    blocks: Weak<[Block]>,
    cost: ContentCost,
}

/// As many as fill a hash table of two million places to seven eighths, which is when it would grow. An entry
/// takes [`ENTRY_BYTES`] and one byte more, and a table is at least seven sixteenths full after it grew: 74 to 149
/// bytes a message, 136 MB at most. A message with several kinds of blocks takes 16 bytes more and 40 for each kind.
const MOST_MESSAGES: usize = 7 << 18;

/// The size of an entry with its address.
const ENTRY_BYTES: usize = 64;

const _: () = assert!(size_of::<(usize, Entry)>() <= ENTRY_BYTES);

impl Default for MessageCache {
    fn default() -> Self {
        Self { costs: Mutex::default(), most_messages: MOST_MESSAGES, tools: Mutex::default() }
    }
}

impl MessageCache {
    /// The costs of several messages in order. What is not known is worked out without holding the lock.
    pub(crate) fn costs(
        &self,
        messages: &[Message],
        work_out: impl Fn(&Message) -> ContentCost,
    ) -> Vec<ContentCost> {
        let known: Vec<Option<ContentCost>> = {
            let mut costs = self.lock();
            costs.asked = costs.asked.saturating_add(messages.len());
            let known = |message| costs.entries.get(&address(message)).map(|entry| entry.cost.clone());
            messages.iter().map(known).collect()
        };
        let mut news = Vec::new();
        let all = known.into_iter().zip(messages).map(|(known, message)| {
            known.unwrap_or_else(|| {
                let cost = work_out(message);
                news.push((message, cost.clone()));
                cost
            })
        });
        let all = all.collect();
        self.remember(news, messages);
        all
    }

    /// The cost of tool definitions, worked out again only when they are others than the last time.
    pub(crate) fn tools(
        &self,
        tools: &Arc<[RawJson]>,
        work_out: impl FnOnce(&[RawJson]) -> Amount,
    ) -> Amount {
        let mut last = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, cost)) if std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(tools)) => *cost,
            _ => {
                let cost = work_out(tools);
                *last = Some((Arc::downgrade(tools), cost));
                cost
            }
        }
    }

    /// Remembers what was worked out for some of these messages, as far as there is room.
    fn remember(&self, news: Vec<(&Message, ContentCost)>, messages: &[Message]) {
        if news.is_empty() {
            return;
        }
        let mut costs = self.lock();
        for (message, cost) in news {
            let entries = &costs.entries;
            let is_full = entries.len() == entries.capacity() || entries.len() >= self.most_messages;
            if is_full && !costs.make_room(self.most_messages, messages) {
                return;
            }
            let blocks = Arc::downgrade(message.blocks());
            costs.entries.insert(address(message), Entry { blocks, cost });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Costs> {
        // A panic elsewhere cannot leave an entry half made.
        self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().entries.len()
    }
}

impl Costs {
    /// Makes room for more entries, as many as there are, so that sweeping stays rare: drops those whose message is
    /// gone, and where the table may not grow any further those of other sessions than the one at hand. Returns
    /// whether there is room now. Where one session alone fills the table, its first messages stay in it: dropping
    /// them for the last ones would leave nothing known the next time.
    fn make_room(&mut self, most: usize, at_hand: &[Message]) -> bool {
        if self.entries.len() >= most {
            if self.asked < self.entries.len() {
                return false;
            }
            self.asked = 0;
        }
        self.entries.retain(|_, entry| entry.blocks.strong_count() > 0);
        if self.entries.len() > most / 8 * 7 {
            let at_hand: HashSet<usize, BuildHasherDefault<AddressHasher>> =
                at_hand.iter().map(address).collect();
            self.entries.retain(|address, _| at_hand.contains(address));
        }
        let room = most.saturating_sub(self.entries.len());
        self.entries.reserve(room.min(self.entries.len() + 1));
        room > 0
    }
}

fn address(message: &Message) -> usize {
    Arc::as_ptr(message.blocks()).cast::<Block>().addr()
}

/// Spreads an address over the hash; addresses are not chosen by the text of a transcript.
#[derive(Debug, Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        // Fibonacci hashing; the high bits are the good ones, so they are brought down as well.
        let spread = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ (spread >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_tools_anew_when_they_change() {
        let cache = MessageCache::default();
        let tools = |json: &str| -> Arc<[RawJson]> { Arc::from([RawJson::parse(json).unwrap()]) };
        let length =
            |tools: &[RawJson]| Amount::exact(tools.iter().map(|tool| tool.as_str().len() as u64).sum());
        let first = tools("{}");
        assert_eq!(cache.tools(&first, length), Amount::exact(2));
        assert_eq!(cache.tools(&first, |_| unreachable!("these are known")), Amount::exact(2));
        for _ in 0..100 {
            assert_eq!(cache.tools(&tools("{ }"), length), Amount::exact(3));
            assert_eq!(cache.tools(&tools("[1]"), |_| Amount::exact(7)), Amount::exact(7));
        }
        assert_eq!(cache.tools(&first, length), Amount::exact(2));
    }

    /// Counts messages with a cache and returns how many had to be worked out.
    fn worked_out(cache: &MessageCache, messages: &[Message]) -> usize {
        let news = std::cell::Cell::new(0);
        let work_out = |_: &Message| {
            news.set(news.get() + 1);
            ContentCost::default()
        };
        assert_eq!(cache.costs(messages, work_out).len(), messages.len());
        news.get()
    }

    fn session(messages: usize) -> Vec<Message> {
        (0..messages).map(|_| Message::user("kept")).collect()
    }

    #[test]
    fn forgets_messages_that_are_gone_and_only_those() {
        let cache = MessageCache::default();
        let kept = session(100);
        worked_out(&cache, &kept);
        for _ in 0..10_000 {
            worked_out(&cache, &session(1));
        }
        assert!(cache.len() < 1_000, "{} entries", cache.len());
        assert_eq!(worked_out(&cache, &kept), 0);
    }

    #[test]
    fn a_session_of_a_million_messages_is_counted_once() {
        let cache = MessageCache::default();
        let mut messages = session(1_000_000);
        assert_eq!(worked_out(&cache, &messages), 1_000_000);
        messages.extend(session(2));
        assert_eq!(worked_out(&cache, &messages), 2);
        assert_eq!(worked_out(&cache, &messages), 0);
    }

    /// Beyond the bound the first messages stay known, and the table stays bounded.
    #[test]
    fn a_session_beyond_the_bound_is_not_forgotten_as_a_whole() {
        let cache = MessageCache { most_messages: 1_000, ..MessageCache::default() };
        let mut messages = session(1_200);
        assert_eq!(worked_out(&cache, &messages), 1_200);
        for more in 1..50 {
            messages.extend(session(1));
            assert_eq!(worked_out(&cache, &messages), 200 + more);
            assert_eq!(cache.len(), 1_000);
        }
        let capacity = cache.lock().entries.capacity();
        assert!(capacity <= 2_000, "{capacity}");
    }

    /// A full table makes room for another session, and a small one beside it does not empty it each time.
    #[test]
    fn a_full_table_makes_room_in_time() {
        let cache = MessageCache { most_messages: 1_000, ..MessageCache::default() };
        let large = session(1_000);
        assert_eq!(worked_out(&cache, &large), 1_000);
        let small = session(10);
        let rounds = (0..101).take_while(|_| worked_out(&cache, &small) == 10).count();
        assert!((1..101).contains(&rounds), "{rounds}");
        assert_eq!((worked_out(&cache, &small), cache.len()), (0, 10));
        drop(large);
        let other = session(990);
        assert_eq!(worked_out(&cache, &other), 990);
        assert_eq!(worked_out(&cache, &other) + worked_out(&cache, &small), 0);
    }
}
