//! What `decide` has computed and `apply` would compute again: results of items, paths, merged contexts
//! and compiled definitions. It stands beside the event, is never written, and replay has none of it.

use std::slice::Iter;
use std::sync::Arc;

use smallvec::SmallVec;
use tenure_flow::Definition;
use tenure_record::id::{GroupId, RunId, TokenId};
use tenure_value::{Path, Value};

/// Values that the decisions of one event lead to, in the order in which they are applied. Most events
/// have none, so what there is lies in a box: a draft and its record pass it on as one pointer.
#[derive(Clone, Debug, Default)]
pub struct Precomputed(Option<Box<Kept>>);

#[derive(Clone, Debug, Default)]
struct Kept {
    values: SmallVec<[(RunId, ValueOf, Value); 1]>,
    paths: SmallVec<[Path; 1]>,
    definition: Option<Arc<Definition>>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueOf {
    /// The result of the item whose cascade ends this token.
    Item(TokenId),
    /// The context around this group with its merges done.
    Merge(GroupId),
}

impl Precomputed {
    pub(crate) fn value(&mut self, run: RunId, of: ValueOf, value: Value) {
        self.kept().values.push((run, of, value));
    }

    pub(crate) fn path(&mut self, path: Path) {
        self.kept().paths.push(path);
    }

    pub(crate) fn definition(&mut self, definition: &Arc<Definition>) {
        self.kept().definition = Some(Arc::clone(definition));
    }

    /// How much there is, to recall from here on later.
    pub(crate) fn mark(&self) -> (usize, usize) {
        self.0.as_ref().map_or((0, 0), |kept| (kept.values.len(), kept.paths.len()))
    }

    /// What came after that mark.
    pub(crate) fn recall(&self, (values, paths): (usize, usize)) -> Recall<'_> {
        let Some(kept) = &self.0 else { return Recall::none() };
        Recall {
            values: kept.values[values..].iter(),
            paths: kept.paths[paths..].iter(),
            definition: kept.definition.as_ref(),
        }
    }

    /// Adds what a later cascade of the event has.
    pub(crate) fn append(&mut self, later: Self) {
        if self.mark() == (0, 0) {
            *self = later;
        } else if let Some(mut later) = later.0 {
            let kept = self.kept();
            kept.values.append(&mut later.values);
            kept.paths.append(&mut later.paths);
        }
    }

    fn kept(&mut self) -> &mut Kept {
        self.0.get_or_insert_default()
    }
}

/// Precomputed values on their way into a state. One that is not the next is computed again.
pub(crate) struct Recall<'p> {
    values: Iter<'p, (RunId, ValueOf, Value)>,
    paths: Iter<'p, Path>,
    /// What a source was compiled to before it was registered.
    pub(crate) definition: Option<&'p Arc<Definition>>,
}

impl Recall<'_> {
    /// Nothing is precomputed.
    pub(crate) fn none() -> Self {
        Self { values: [].iter(), paths: [].iter(), definition: None }
    }

    pub(crate) fn value(&mut self, run: RunId, of: ValueOf) -> Option<Value> {
        let (at, what, value) = self.values.as_slice().first()?;
        if (*at, *what) != (run, of) {
            return None;
        }
        self.values.next();
        Some(value.clone())
    }

    pub(crate) fn path(&mut self, text: &str) -> Option<Path> {
        let path = self.paths.as_slice().first()?;
        if **path.text() != *text {
            return None;
        }
        self.paths.next();
        Some(path.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_recalled_in_order_and_only_where_they_belong() {
        let mut known = Precomputed::default();
        let (run, token) = (RunId(1), ValueOf::Item(TokenId(2)));
        known.value(run, token, Value::uint(7));
        let mark = known.mark();
        known.value(run, ValueOf::Merge(GroupId(2)), Value::uint(8));
        known.path(Path::parse("context.a").unwrap());
        let mut recall = known.recall((0, 0));
        assert_eq!(recall.value(run, ValueOf::Merge(GroupId(2))), None, "another is the next");
        assert_eq!(recall.value(RunId(2), token), None, "another run");
        assert_eq!(recall.value(run, token), Some(Value::uint(7)));
        assert_eq!(recall.path("context.b"), None);
        assert_eq!(recall.path("context.a").map(|path| path.to_string()), Some("context.a".into()));
        assert!(recall.path("context.a").is_none(), "each is recalled once");
        let mut later = known.recall(mark);
        assert_eq!(later.value(run, ValueOf::Merge(GroupId(2))), Some(Value::uint(8)));
        let mut all = Precomputed::default();
        all.append(known.clone());
        all.append(known);
        assert_eq!(all.mark(), (4, 2));
    }
}
