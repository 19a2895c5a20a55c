//! The generator of a Markov chain, row by row.

/// Rates from state to state; the diagonal is implied.
#[derive(Debug, Clone)]
pub(super) struct Generator {
    /// Where each row starts in `entries`; one more than there are rows.
    starts: Vec<usize>,
    /// (state, rate), rates positive, states of a row different.
    entries: Vec<(u32, f64)>,
}

impl Default for Generator {
    /// No states yet.
    fn default() -> Self {
        Self { starts: vec![0], entries: Vec::new() }
    }
}

impl Generator {
    /// Appends a row.
    pub(super) fn push(&mut self, row: impl Iterator<Item = (u32, f64)>) {
        self.entries.extend(row);
        self.starts.push(self.entries.len());
    }

    /// Number of states.
    pub(super) fn states(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of transitions.
    pub(super) fn transitions(&self) -> usize {
        self.entries.len()
    }

    /// Transitions out of a state.
    #[inline]
    pub(super) fn row(&self, state: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[state]..self.starts[state + 1]]
    }

    /// Total rate out of a state.
    #[inline]
    pub(super) fn out(&self, state: usize) -> f64 {
        self.row(state).iter().map(|t| t.1).sum()
    }

    /// The largest rate out of any state.
    pub(super) fn fastest(&self) -> f64 {
        (0..self.states()).map(|i| self.out(i)).fold(0.0, f64::max)
    }

    /// The same rates by the state after: row j holds (i, rate from i to j).
    pub(super) fn transposed(&self) -> Self {
        let mut starts = vec![0; self.states() + 1];
        self.entries.iter().for_each(|&(to, _)| starts[to as usize + 1] += 1);
        (0..self.states()).for_each(|j| starts[j + 1] += starts[j]);
        let mut next = starts.clone();
        let mut entries = vec![(0, 0.0); self.entries.len()];
        for (from, i) in (0..).zip(0..self.states()) {
            for &(to, rate) in self.row(i) {
                let place = &mut next[to as usize];
                entries[*place] = (from, rate);
                *place += 1;
            }
        }
        Self { starts, entries }
    }

    /// The same chain with its states in another order: state `order[i]` becomes state i.
    pub(super) fn reordered(&self, order: &[u32]) -> Self {
        let mut place = vec![0; order.len()];
        (0..).zip(order).for_each(|(i, &old)| place[old as usize] = i);
        let mut rows = Self::default();
        for &old in order {
            rows.push(self.row(old as usize).iter().map(|&(to, rate)| (place[to as usize], rate)));
        }
        rows
    }

    /// The most that a transition moves the number of the state.
    pub(super) fn bandwidth(&self) -> usize {
        let far = |i: usize| self.row(i).iter().map(move |t| (t.0 as usize).abs_diff(i)).max().unwrap_or(0);
        (0..self.states()).map(far).max().unwrap_or(0)
    }

    /// The sum of |net flow into a state| over all states, over the largest rate: 0 if `law` is stationary.
    pub(super) fn residual(&self, law: &[f64]) -> f64 {
        let mut flow: Vec<f64> = (0..self.states()).map(|i| -law[i] * self.out(i)).collect();
        for (i, p) in law.iter().enumerate() {
            self.row(i).iter().for_each(|&(to, rate)| flow[to as usize] += p * rate);
        }
        let fastest = self.fastest();
        if fastest > 0.0 { flow.iter().map(|f| f.abs()).sum::<f64>() / fastest } else { 0.0 }
    }
}
