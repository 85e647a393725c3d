//! Replicas of several devices: which of them exchanges a variable with the other replicas.
//!
//! The first devices of all replicas are a group, the second ones another one, and so on; each group exchanges among its own
//! devices. In a pipeline the gradient of a variable is on the device of its stage. Under `ModelParallel` the first device of a
//! replica has all gradients. Replicas of one device are one group.

use std::collections::HashMap;

use burn::module::ParamId;

use super::patterns::TransferLog;
use crate::device::LogicalDevice;
use crate::variable::VariableRecord;

/// The groups of devices, and the group of each variable.
pub(crate) struct Groups {
    /// The devices of each group, in the order of the replicas; where there is one group, followed by the servers.
    devices: Vec<Vec<LogicalDevice>>,
    /// The groups of the variables that are not in the first one.
    of: HashMap<ParamId, usize>,
}

impl Groups {
    /// Of replicas of `each` devices, one replica after the other.
    pub(crate) fn of(all: &[LogicalDevice], each: usize, records: &[VariableRecord]) -> Self {
        let group = |group: usize| all.iter().skip(group).step_by(each).cloned().collect();
        let of = records.iter().filter_map(|record| {
            let group = group_of(record, each);
            (group > 0).then_some((record.param, group))
        });
        Self {
            devices: (0..each).map(group).collect(),
            of: of.collect(),
        }
    }

    /// The group of a variable.
    pub(super) fn group(&self, variable: ParamId) -> usize {
        self.of.get(&variable).copied().unwrap_or(0)
    }

    /// The devices of a group: that of each replica, or replicas and servers.
    pub(super) fn devices(&self, group: usize) -> &[LogicalDevice] {
        &self.devices[group]
    }
}

/// The group that exchanges a variable, where replicas have `each` devices.
pub(super) fn group_of(record: &VariableRecord, each: usize) -> usize {
    record.homes.first().map_or(0, |home| home % each.max(1))
}

/// The transfers of each group, whose devices are counted from 0.
#[derive(Debug, Default)]
pub(super) struct GroupLogs(Vec<TransferLog>);

impl GroupLogs {
    /// The log of a group.
    pub(super) fn of(&mut self, group: usize) -> &mut TransferLog {
        let count = self.0.len().max(group + 1);
        self.0.resize_with(count, TransferLog::default);
        &mut self.0[group]
    }

    /// All transfers, with the devices counted as those of all replicas, `each` of a replica.
    pub(super) fn joined(self, each: usize) -> TransferLog {
        let mut joined = TransferLog::default();
        for (group, log) in self.0.into_iter().enumerate() {
            for sent in log.transfers() {
                let device = |replica: usize| replica * each + group;
                joined.count(sent.hop, device(sent.from), device(sent.to), sent.bytes);
            }
        }
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_send_at_the_same_time() {
        let mut logs = GroupLogs::default();
        logs.of(1).count(0, 1, 0, 5);
        logs.of(0).count(0, 2, 0, 7);
        logs.of(1).count(1, 0, 1, 5);
        let found = logs.joined(2).transfers().into_iter();
        let found: Vec<_> = found.map(|it| (it.hop, it.from, it.to, it.bytes)).collect();
        assert_eq!(found, [(0, 3, 1, 5), (0, 4, 0, 7), (1, 1, 3, 5)]);
    }
}
