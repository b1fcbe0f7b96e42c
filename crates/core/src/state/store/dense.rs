//! A slab that hands out small references and uses the freed ones again: cold parts, queues, names of tasks
//! and workers, and what is on the shelf. Which reference something gets is a matter of memory, never of truth.

use crate::state::store::Paged;

/// Slots to a page; smaller than a page of tasks because these are larger and have owned parts.
const PAGE_SLOTS: usize = 128;

macro_rules! reference {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(pub u32);

        impl From<u32> for $name {
            fn from(number: u32) -> Self {
                Self(number)
            }
        }

        impl From<$name> for u32 {
            fn from(reference: $name) -> u32 {
                reference.0
            }
        }
    };
}

reference! {
    /// Where a task's cold part is.
    ColdRef
}
reference! {
    /// Where a queue is.
    QueueRef
}
reference! {
    /// Where a task's name is.
    NameRef
}
reference! {
    /// Where a worker's name is.
    WorkerRef
}

reference! {
    /// Where the line about a blob on the shelf is.
    ShelvedRef
}

impl ColdRef {
    /// The task has no cold part.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn get(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

impl NameRef {
    /// The task has no name.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn get(self) -> Option<Self> {
        (self != Self::NONE).then_some(self)
    }
}

/// A slab of `T`, addressed by `R`.
#[derive(Clone, Debug)]
pub(crate) struct Dense<R, T> {
    slots: Paged<Slot<T>, PAGE_SLOTS>,
    /// One past the highest slot ever used.
    end: u32,
    /// The first free slot below `end`; the others are chained through the slots.
    free: Option<u32>,
    len: usize,
    reference: std::marker::PhantomData<R>,
}

#[derive(Clone, Debug)]
enum Slot<T> {
    Taken(T),
    Free { next: Option<u32> },
}

impl<R, T> Default for Dense<R, T> {
    fn default() -> Self {
        let slots = Paged::default();
        Self { slots, end: 0, free: None, len: 0, reference: std::marker::PhantomData }
    }
}

impl<R: From<u32> + Into<u32>, T: Clone> Dense<R, T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of all slots, without what their values own. O(1).
    pub(crate) fn bytes(&self) -> u64 {
        self.slots.bytes()
    }

    pub(crate) fn get(&self, at: R) -> Option<&T> {
        match self.slots.get(at.into().into()) {
            Some(Slot::Taken(value)) => Some(value),
            Some(Slot::Free { .. }) | None => None,
        }
    }

    pub(crate) fn get_mut(&mut self, at: R) -> Option<&mut T> {
        match self.slots.get_mut(at.into().into()) {
            Some(Slot::Taken(value)) => Some(value),
            Some(Slot::Free { .. }) | None => None,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> R {
        self.len += 1;
        let Some(at) = self.free else {
            let at = self.end;
            self.end += 1;
            self.slots.insert(at.into(), Slot::Taken(value));
            return at.into();
        };
        let slot = self.slots.get_mut(at.into()).expect("the free chain runs through used slots");
        let Slot::Free { next } = std::mem::replace(slot, Slot::Taken(value)) else {
            unreachable!("the free chain runs through free slots");
        };
        self.free = next;
        at.into()
    }

    pub(crate) fn remove(&mut self, at: R) -> Option<T> {
        let at = at.into();
        let slot = self.slots.get_mut(at.into())?;
        if matches!(slot, Slot::Free { .. }) {
            return None;
        }
        let Slot::Taken(value) = std::mem::replace(slot, Slot::Free { next: self.free }) else {
            unreachable!("checked above");
        };
        self.free = Some(at);
        self.len -= 1;
        Some(value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (R, &T)> {
        self.slots.iter().filter_map(|(at, slot)| match slot {
            Slot::Taken(value) => Some((R::from(at as u32), value)),
            Slot::Free { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_references_are_used_again() {
        let mut dense = Dense::<QueueRef, &str>::default();
        let a = dense.insert("a");
        let b = dense.insert("b");
        assert_eq!(dense.remove(a), Some("a"));
        assert_eq!(dense.get(a), None);
        assert_eq!(dense.remove(a), None);
        assert_eq!(dense.insert("c"), a);
        assert_ne!(dense.insert("d"), b);
        assert_eq!(dense.len(), 3);
        let values: Vec<_> = dense.iter().map(|(_, value)| *value).collect();
        assert_eq!(values, ["c", "b", "d"]);
    }
}
