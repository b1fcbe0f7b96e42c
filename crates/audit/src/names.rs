//! Names of queues and workers, each kept once and for as long as something needs it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenure_record::event::QueueSettings;
use tenure_record::time::Timestamp;

/// A name's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NameRef(u32);

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// A tree, because strangers choose the names.
    places: BTreeMap<Arc<str>, NameRef>,
    names: Vec<Name>,
    /// Places that nothing needs any more.
    free: Vec<NameRef>,
}

#[derive(Clone, Debug, Default)]
struct Name {
    text: Arc<str>,
    uses: u64,
    /// For a queue: no leases are given from it.
    paused: bool,
    /// For a queue: nor before this moment of the wall clock.
    paused_until: Timestamp,
    /// For a queue: the one that gets copies of its tasks that end FAILED or DEAD.
    dead_letter_queue: Option<Arc<str>>,
    /// For a queue: it has settings, which need its name as long as they are there.
    configured: bool,
}

impl Names {
    /// Finds or adds a name, and counts one more that needs it.
    pub(super) fn hold(&mut self, text: &str) -> NameRef {
        let at = match self.places.get(text) {
            Some(at) => *at,
            None => self.add(text),
        };
        self.names[at.0 as usize].uses += 1;
        at
    }

    /// One less needs it.
    pub(super) fn let_go(&mut self, at: NameRef) {
        let name = &mut self.names[at.0 as usize];
        name.uses -= 1;
        if name.uses == 0 {
            self.places.remove(&name.text);
            self.free.push(at);
        }
    }

    pub(super) fn text(&self, at: NameRef) -> &str {
        &self.names[at.0 as usize].text
    }

    pub(super) fn is_paused(&self, at: NameRef, wall: Timestamp) -> bool {
        let name = &self.names[at.0 as usize];
        name.paused || wall < name.paused_until
    }

    /// A queue has settings from here on.
    pub(super) fn configure(&mut self, text: &str, settings: &QueueSettings) {
        let at = self.hold(text);
        let name = &mut self.names[at.0 as usize];
        (name.paused, name.paused_until) = (settings.paused, settings.paused_until);
        name.dead_letter_queue = settings.dead_letter_queue.clone();
        self.keep(at);
        if let Some(text) = &settings.dead_letter_queue {
            let at = self.hold(text);
            self.keep(at);
        }
    }

    /// A queue that was just held stays until it is deleted. Its settings hold it once.
    fn keep(&mut self, at: NameRef) {
        if std::mem::replace(&mut self.names[at.0 as usize].configured, true) {
            self.let_go(at);
        }
    }

    /// The queue that gets copies of a queue's tasks that end FAILED or DEAD.
    pub(super) fn dead_letter_queue(&self, at: NameRef) -> Option<Arc<str>> {
        self.names[at.0 as usize].dead_letter_queue.clone()
    }

    /// Forgets a queue, if nothing but its own settings needs its name.
    pub(super) fn delete(&mut self, text: &str) -> bool {
        let Some(at) = self.places.get(text).copied() else { return false };
        let name = &self.names[at.0 as usize];
        let dead_letters =
            |at: &NameRef| self.names[at.0 as usize].dead_letter_queue.as_deref() == Some(text);
        let is_unused =
            name.configured && name.uses == 1 && !self.places.values().any(dead_letters);
        if is_unused {
            self.let_go(at);
        }
        is_unused
    }

    fn add(&mut self, text: &str) -> NameRef {
        let text: Arc<str> = Arc::from(text);
        let name = Name { text: Arc::clone(&text), uses: 0, ..Name::default() };
        let at = match self.free.pop() {
            Some(at) => {
                self.names[at.0 as usize] = name;
                at
            }
            None => {
                self.names.push(name);
                NameRef(self.names.len() as u32 - 1)
            }
        };
        self.places.insert(text, at);
        at
    }
}
