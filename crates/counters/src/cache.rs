//! Remembers what the content of a message costs, so that a long session is not counted again each turn.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use epitome_loop::{Block, Blocks, RawJson};

use crate::content_cost::ContentCost;
use crate::error_band::Amount;

/// Costs by identity of the shared blocks.
///
/// A message is recognized by the address of its blocks. An entry holds a weak pointer, which keeps that
/// address from being used again and keeps the blocks from being changed in place, but does not keep the
/// content alive. Entries whose message is gone are swept out before the table would grow.
#[derive(Debug, Default)]
pub(crate) struct MessageCache {
    costs: Mutex<Costs>,
    /// The tool definitions that were counted last; a session rarely changes them.
    tools: Mutex<Option<(Weak<[RawJson]>, Amount)>>,
}

type Costs = HashMap<usize, Entry, BuildHasherDefault<AddressHasher>>;

#[derive(Debug)]
struct Entry {
    blocks: Weak<[Block]>,
    cost: ContentCost,
}

/// With more live messages than this the table starts anew: 16 MB at most.
const MOST_MESSAGES: usize = 1 << 17;

impl MessageCache {
    /// The costs of several messages in order. What is not known is worked out without holding the lock.
    pub(crate) fn costs<'a>(
        &self,
        messages: impl Iterator<Item = &'a Blocks> + Clone,
        work_out: impl Fn(&[Block]) -> ContentCost,
    ) -> Vec<ContentCost> {
        let known: Vec<Option<ContentCost>> = {
            let costs = self.lock();
            messages.clone().map(|blocks| costs.get(&address(blocks)).map(|entry| entry.cost)).collect()
        };
        let mut news = Vec::new();
        let all = known.into_iter().zip(messages).map(|(known, blocks)| {
            known.unwrap_or_else(|| {
                let cost = work_out(blocks);
                news.push((blocks, cost));
                cost
            })
        });
        let all = all.collect();
        self.remember(news);
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

    fn remember(&self, news: Vec<(&Blocks, ContentCost)>) {
        if news.is_empty() {
            return;
        }
        let mut costs = self.lock();
        for (blocks, cost) in news {
            if costs.len() == costs.capacity() || costs.len() >= MOST_MESSAGES {
                sweep(&mut costs);
            }
            costs.insert(address(blocks), Entry { blocks: Arc::downgrade(blocks), cost });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Costs> {
        // A panic elsewhere cannot leave an entry half made.
        self.costs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.lock().len()
    }
}

fn address(blocks: &Blocks) -> usize {
    Arc::as_ptr(blocks).cast::<Block>().addr()
}

/// Drops entries whose message is gone, and makes room for as many again, so that sweeping stays rare.
fn sweep(costs: &mut Costs) {
    costs.retain(|_, entry| entry.blocks.strong_count() > 0);
    if costs.len() >= MOST_MESSAGES {
        costs.clear();
    }
    costs.reserve(costs.len() + 1);
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

    #[test]
    fn forgets_messages_that_are_gone_and_only_those() {
        let cache = MessageCache::default();
        let kept: Vec<Blocks> = (0..100).map(|_| Arc::from([Block::text("kept")])).collect();
        let worked_out = std::cell::Cell::new(0);
        let work_out = |_: &[Block]| {
            worked_out.set(worked_out.get() + 1);
            ContentCost::default()
        };
        cache.costs(kept.iter(), work_out);
        for _ in 0..10_000 {
            let passing: Blocks = Arc::from([Block::text("passing")]);
            cache.costs([&passing].into_iter(), work_out);
        }
        assert!(cache.len() < 1_000, "{} entries", cache.len());
        worked_out.set(0);
        cache.costs(kept.iter(), work_out);
        assert_eq!(worked_out.get(), 0);
    }
}
