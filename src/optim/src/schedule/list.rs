//! The schedules. A row is a variant of [`Schedule`] and its type, which has a file with an implementation of `Curve`.

use super::curve::Curve;
use super::{
    BertWarmup, CosineDecay, ExponentialDecay, IntoSchedule, PolynomialDecay, WarmupLinear,
};

macro_rules! schedules {
    ($($(#[$doc:meta])* $schedule:ident($type:ty),)*) => {
        /// A learning rate, fixed or changing from step to step.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Schedule {
            $($(#[$doc])* $schedule($type),)*
        }

        impl Schedule {
            /// The schedule itself.
            pub(super) fn curve(&self) -> &dyn Curve {
                match self {
                    $(Self::$schedule(schedule) => schedule,)*
                }
            }
        }

        $(impl IntoSchedule for $type {
            fn into_schedule(self) -> Schedule {
                Schedule::$schedule(self)
            }
        })*
    };
}

schedules! {
    /// The same at every step.
    Constant(f64),
    /// Up from 0, then down to 0 in a straight line, as Hugging Face does it.
    WarmupLinear(WarmupLinear),
    /// The same as Google's BERT does it.
    BertWarmup(BertWarmup),
    /// A constant factor every so many steps.
    ExponentialDecay(ExponentialDecay),
    /// Down along half a cosine.
    CosineDecay(CosineDecay),
    /// To an end along a power.
    PolynomialDecay(PolynomialDecay),
}
