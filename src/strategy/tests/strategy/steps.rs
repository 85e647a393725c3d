//! Steps of training on the tiny module, without an optimizer of the crates above.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Int, Tensor, TensorData};
use stratoscope_strategy::{AsStrategy, Origin, ReplicaId, Replicas};

use crate::encoder::{Encoder, named};

/// The same weights under any strategy.
pub fn placed(strategy: &impl AsStrategy) -> Replicas<Encoder> {
    struct Numbered(usize);
    impl ModuleMapper for Numbered {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            self.0 += 1;
            let seed = self.0;
            param.map(|value| {
                let (shape, device) = (value.dims(), value.device());
                let numbers = numbers(shape.iter().product(), seed);
                Tensor::from_data(TensorData::new(numbers, shape), &device).require_grad()
            })
        }
    }
    let strategy = strategy.strategy();
    let device = strategy.replicas()[0].training();
    let module = Encoder::new(2, &device).map(&mut Numbered(0));
    let names = named(&module);
    Replicas::place_under(Some(strategy), module, &names, Origin::current()).expect("room")
}

/// Numbers between −0.5 and 0.5 that are no round ones.
pub fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count)
        .map(|index| ((index * 37 + seed * 101) % 97) as f32 / 97.0 - 0.5)
        .collect()
}

/// Gradients with other numbers for every replica.
pub fn gradients(module: &Encoder, replica: usize) -> GradientsParams {
    struct Fill(usize, GradientsParams);
    impl ModuleVisitor for Fill {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let device = param.val().device().without_autodiff();
            let shape: [usize; D] = param.val().dims();
            let data = TensorData::new(numbers(shape.iter().product(), self.0), shape);
            self.1
                .register(param.id, Tensor::<D>::from_data(data, &device));
        }
    }
    let mut fill = Fill(7 * replica + 1, GradientsParams::new());
    module.visit(&mut fill);
    fill.1
}

pub fn flat(module: &Encoder, gradients: &GradientsParams) -> Vec<f32> {
    struct Read<'a>(&'a GradientsParams, Vec<f32>);
    impl ModuleVisitor for Read<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let gradient = self.0.get::<D>(param.id).expect("every parameter has one");
            self.1.extend(gradient.into_data().iter::<f32>());
        }
    }
    let mut read = Read(gradients, Vec::new());
    module.visit(&mut read);
    read.1
}

pub fn weights(module: &Encoder) -> Vec<f32> {
    struct Read(Vec<f32>);
    impl ModuleVisitor for Read {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.extend(param.val().into_data().iter::<f32>());
        }
    }
    let mut read = Read(Vec::new());
    module.visit(&mut read);
    read.0
}

pub fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[track_caller]
pub fn near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
    }
}

/// The gradients of the mean loss over some rows.
pub fn of_rows(module: &Encoder, rows: std::ops::Range<usize>) -> GradientsParams {
    let device = module.devices()[0].clone().autodiff();
    let number = |index: usize| i32::try_from((index * 7 + index * index) % 11).expect("small");
    let count = rows.len();
    let ids: Vec<i32> = (rows.start * 4..rows.end * 4).map(number).collect();
    let labels: Vec<i32> = rows.map(|row| number(row) % 3).collect();
    let ids = Tensor::<2, Int>::from_data(TensorData::new(ids, [count, 4]), &device);
    let labels = Tensor::<1, Int>::from_data(TensorData::new(labels, [count]), &device);
    let loss = burn::nn::loss::CrossEntropyLossConfig::new().init(&device);
    let loss = loss.forward(module.forward(ids), labels);
    GradientsParams::from_grads(loss.backward(), module)
}

/// w − rate · g, in place of an optimizer.
pub fn descend(module: &mut Encoder, gradients: GradientsParams) {
    struct Descend(GradientsParams);
    impl ModuleMapper for Descend {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            // A server has those of its own rows.
            let Some(gradient) = self.0.remove::<D>(param.id) else {
                return param;
            };
            param.map(|value| {
                Tensor::from_inner(value.inner() - gradient.mul_scalar(0.5)).require_grad()
            })
        }
    }
    *module = module.clone().map(&mut Descend(gradients));
}

/// Three steps over batches of 7 rows, split over the replicas as `fit!` splits them.
pub fn trained(replicas: &mut Replicas<Encoder>) -> Vec<f32> {
    let count = replicas.len();
    for step in 0..3 {
        replicas.begin_step();
        let size = |index: usize| 7 / count + usize::from(index < 7 % count);
        let mut start = 7 * step;
        let mut shards = Vec::new();
        for index in 0..count {
            shards.push(start..start + size(index));
            start += size(index);
        }
        let samples: Vec<usize> = shards.iter().map(ExactSizeIterator::len).collect();
        let given = replicas
            .compute_each_replica(shards, |_, module, rows| match rows.is_empty() {
                true => GradientsParams::new(),
                false => of_rows(module, rows),
            })
            .expect("one shard each");
        let reduced = replicas.all_reduce(given, &samples).expect("one set each");
        assert_eq!(reduced.len(), replicas.copies());
        update(replicas, reduced);
    }
    weights(replicas.first())
}

/// Every copy, or every server's rows, with the gradients of each copy.
pub fn update(replicas: &mut Replicas<Encoder>, gradients: Vec<GradientsParams>) {
    let gradients = match replicas.is_sharded() {
        false => gradients,
        true => gradients
            .into_iter()
            .enumerate()
            .flat_map(|(copy, of_all)| replicas.scatter(copy, of_all))
            .collect(),
    };
    replicas
        .update_each_replica(gradients, |_, module, gradients| descend(module, gradients))
        .expect("one set per module");
}

/// Three rounds in which every worker pushes and fetches in turn.
pub fn pushed(replicas: &mut Replicas<Encoder>) -> Vec<f32> {
    for _ in 0..3 {
        replicas.begin_step();
        let shards = (0..replicas.len()).map(|index| 3 * index..3 * index + 3);
        let given = replicas
            .compute_each_replica(shards.collect(), |_, module, rows| of_rows(module, rows))
            .expect("one shard each");
        for (index, gradients) in given.into_iter().enumerate() {
            let gradients = replicas.push(ReplicaId(index), gradients);
            update(replicas, vec![gradients]);
            replicas.fetch(ReplicaId(index)).expect("room");
        }
    }
    weights(replicas.first())
}
