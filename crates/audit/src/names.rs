//! Names of queues and workers, each kept once and for as long as something needs it.

use std::collections::BTreeMap;
use std::sync::Arc;

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

#[derive(Clone, Debug)]
struct Name {
    text: Arc<str>,
    uses: u64,
    /// For a queue: no leases are given from it.
    paused: bool,
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

    pub(super) fn is_paused(&self, at: NameRef) -> bool {
        self.names[at.0 as usize].paused
    }

    pub(super) fn pause(&mut self, at: NameRef, paused: bool) {
        self.names[at.0 as usize].paused = paused;
    }

    fn add(&mut self, text: &str) -> NameRef {
        let text: Arc<str> = Arc::from(text);
        let name = Name { text: Arc::clone(&text), uses: 0, paused: false };
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
