//! A mesh of devices with named axes, for [`ModelParallel`](super::ModelParallel) and [`PipelineStrategy`](super::PipelineStrategy).
//! Keras: `keras.distribution.DeviceMesh`.

use stratoscope_diagnostics::rules::{LastAxis, MeshDoesNotFit};
use stratoscope_diagnostics::{Result, Rule};

use super::mirrored::{MOST_REPLICAS, distinct};
use super::split;
use crate::device::{DeviceSpec, LogicalDevice, default_device};

/// Devices in a grid whose axes have names.
#[derive(Clone, Debug)]
pub struct DeviceMesh {
    axes: Vec<(String, usize)>,
    devices: Vec<LogicalDevice>,
}

impl DeviceMesh {
    /// These devices in a grid: `DeviceMesh::new([1, 2], ["batch", "model"], [cuda(0), cuda(1)])`. As in Keras, the last axis
    /// changes fastest.
    ///
    /// # Errors
    /// SC0627 for another number of devices or of names than the shape has; SC0915 for the same device twice, SC0906 for one
    /// that is not there, SC0907 for one that does not start.
    pub fn new<S, N, D>(shape: S, axis_names: N, devices: D) -> Result<Self>
    where
        S: IntoIterator,
        S::Item: TryInto<usize> + ToString,
        N: IntoIterator,
        N::Item: Into<String>,
        D: IntoIterator,
        D::Item: Into<DeviceSpec>,
    {
        let (axes, count) = axes(shape, axis_names)?;
        let devices: Vec<DeviceSpec> = devices.into_iter().map(Into::into).collect();
        if devices.len() != count {
            let shape = sizes(&axes);
            let devices = devices.len();
            return Err(MeshDoesNotFit::Devices { shape, devices }.error());
        }
        let devices = distinct(devices)?;
        Ok(Self { axes, devices })
    }

    /// The same of logical devices: shares of the default device, as many as the shape has places.
    ///
    /// ```
    /// use stratoscope_strategy::DeviceMesh;
    ///
    /// # fn main() -> stratoscope_diagnostics::Result<()> {
    /// let mesh = DeviceMesh::logical([1, 2], ["batch", "model"])?;
    /// assert_eq!(mesh.devices().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// SC0627 for another number of names than the shape has, or more than 64 devices; SC0712 for a default device that is
    /// not there.
    pub fn logical<S, N>(shape: S, axis_names: N) -> Result<Self>
    where
        S: IntoIterator,
        S::Item: TryInto<usize> + ToString,
        N: IntoIterator,
        N::Item: Into<String>,
    {
        let (axes, count) = axes(shape, axis_names)?;
        let devices = split(&default_device()?, count);
        Ok(Self { axes, devices })
    }

    /// Its devices, row by row.
    pub fn devices(&self) -> &[LogicalDevice] {
        &self.devices
    }

    /// The names of its axes with their sizes.
    pub fn axes(&self) -> &[(String, usize)] {
        &self.axes
    }

    /// The axis along which variables are cut: the last one.
    pub(super) fn model_axis(&self) -> &str {
        self.axes.last().map_or("", |(name, _)| name)
    }

    /// How many parts the batch has: the size of the first axis, where there is another one for the layers.
    pub(crate) fn replicas(&self) -> usize {
        match self.axes.as_slice() {
            [(_, size), _, ..] => *size,
            _ => 1,
        }
    }

    /// Whether its last axis can have the slices or the stages of a strategy that `call` makes, and its first one the replicas.
    ///
    /// # Errors
    /// SC0627 for one device along the last axis, or several along an axis between the two.
    pub(super) fn check_axes(&self, last: LastAxis, call: &'static str) -> Result<()> {
        let [first, others @ ..] = self.axes.as_slice() else {
            return Ok(());
        };
        let Some(((own, devices), others)) = others.split_last() else {
            return Ok(());
        };
        let shape = sizes(&self.axes);
        if let Some((axis, _)) = others.iter().find(|(_, size)| *size > 1) {
            let names = self.axes.iter().map(|(name, _)| name.clone()).collect();
            let axis = axis.clone();
            return Err(MeshDoesNotFit::Axes {
                axis,
                shape,
                names,
                last,
                call,
            }
            .error());
        }
        if *devices == 1 && first.1 > 1 {
            return Err(MeshDoesNotFit::Whole {
                axis: own.clone(),
                batch: first.clone(),
                shape,
                last,
                call,
            }
            .error());
        }
        Ok(())
    }
}

fn sizes(axes: &[(String, usize)]) -> Vec<usize> {
    axes.iter().map(|(_, size)| *size).collect()
}

/// The axes, and how many places there are.
fn axes<S, N>(shape: S, names: N) -> Result<(Vec<(String, usize)>, usize)>
where
    S: IntoIterator,
    S::Item: TryInto<usize> + ToString,
    N: IntoIterator,
    N::Item: Into<String>,
{
    let names: Vec<String> = names.into_iter().map(Into::into).collect();
    let mut sizes = Vec::new();
    for size in shape {
        let given = size.to_string();
        match size.try_into() {
            Ok(size) if (1..=MOST_REPLICAS).contains(&size) => sizes.push(size),
            _ => return Err(MeshDoesNotFit::Size { given }.error()),
        }
    }
    let count = sizes
        .iter()
        .try_fold(1_usize, |all, &size| all.checked_mul(size));
    let count = count.filter(|count| *count <= MOST_REPLICAS);
    let Some(count) = count.filter(|_| !sizes.is_empty()) else {
        let given = format!("{sizes:?}");
        return Err(MeshDoesNotFit::Size { given }.error());
    };
    let mut known: Vec<&String> = names.iter().collect();
    known.sort();
    known.dedup();
    if names.len() != sizes.len() || known.len() != names.len() {
        let shape = sizes;
        return Err(MeshDoesNotFit::Names { shape, names }.error());
    }
    Ok((names.into_iter().zip(sizes).collect(), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu;

    #[test]
    fn a_mesh_has_a_device_for_each_place() {
        let mesh = DeviceMesh::logical([1, 3], ["batch", "model"]).expect("three places");
        assert_eq!((mesh.devices().len(), mesh.model_axis()), (3, "model"));
        assert!(mesh.check_axes(LastAxis::Slices, "over").is_ok());
        let mesh = DeviceMesh::logical([2, 3], ["batch", "model"]).expect("six places");
        assert!(mesh.check_axes(LastAxis::Slices, "over").is_ok());
        assert_eq!((mesh.devices().len(), mesh.replicas()), (6, 2));
        let refused = [
            DeviceMesh::new([1, 2], ["batch", "model"], [cpu(0)]).map(drop),
            DeviceMesh::logical([1, 2], ["model"]).map(drop),
            DeviceMesh::logical([2, 2], ["model", "model"]).map(drop),
            DeviceMesh::logical([1, 0], ["batch", "model"]).map(drop),
            DeviceMesh::logical([1, -2], ["batch", "model"]).map(drop),
            DeviceMesh::logical([64, 64], ["batch", "model"]).map(drop),
            DeviceMesh::logical([0_usize; 0], ["batch"; 0]).map(drop),
            DeviceMesh::logical([2, 2, 2], ["batch", "text", "model"])
                .and_then(|mesh| mesh.check_axes(LastAxis::Slices, "over")),
            DeviceMesh::logical([2, 1], ["batch", "model"])
                .and_then(|mesh| mesh.check_axes(LastAxis::Slices, "over")),
        ];
        for found in refused {
            assert_eq!(found.expect_err("it does not fit").code, "SC0627");
        }
    }
}
