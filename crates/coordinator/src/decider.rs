//! What deciding takes and has cost: a seed for jitter, the work of this step, and the bound of a
//! record.

use tenure_record::id::RunId;
use tenure_record::limits::RECORD_BYTES_MAX;

use crate::info::Work;
use crate::limits::STEP_WORK_MAX;

/// The budget and the counters of decisions.
#[derive(Debug)]
pub(crate) struct Decider {
    seed: u64,
    /// What the records of this step have cost.
    step_work: u64,
    /// A longer record is not written.
    record_bytes_max: usize,
    /// The run that a record was mostly about which was too long, and how long it was.
    oversized: Option<(RunId, usize)>,
    /// What was done since the start.
    pub(crate) work: Work,
}

impl Decider {
    pub(crate) fn new(seed: u64) -> Self {
        let record_bytes_max = RECORD_BYTES_MAX;
        Self { seed, step_work: 0, record_bytes_max, oversized: None, work: Work::default() }
    }

    /// An unpredictable number, for jitter.
    pub(crate) fn draw(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.seed >> 11
    }

    /// A step begins: nothing of its budget is used.
    pub(crate) fn begin_step(&mut self) {
        self.step_work = 0;
    }

    /// A decision has cost this much.
    pub(crate) fn spend(&mut self, work: u64) {
        self.step_work += work;
        self.work.heaviest = self.work.heaviest.max(work);
    }

    /// Whether this step has not cost too much yet.
    pub(crate) fn has_budget(&self) -> bool {
        self.step_work < STEP_WORK_MAX
    }

    pub(crate) fn record_bytes_max(&self) -> usize {
        self.record_bytes_max
    }

    /// Writes no record longer than this, or than any record may be.
    pub(crate) fn limit_records(&mut self, bytes_max: usize) {
        self.record_bytes_max = bytes_max.min(RECORD_BYTES_MAX);
    }

    /// A record was too long, and mostly about this run.
    pub(crate) fn note_oversized(&mut self, run_id: Option<RunId>, bytes: usize) {
        self.work.oversized += 1;
        self.oversized = run_id.map(|run_id| (run_id, bytes));
    }

    /// The run that the last record that was too long was mostly about, and the length of the record.
    pub(crate) fn take_oversized(&mut self) -> Option<(RunId, usize)> {
        self.oversized.take()
    }
}
