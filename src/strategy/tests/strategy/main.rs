//! Strategies, replicas, devices and placement from outside, on a tiny module. They are one program, because each program
//! compiles burn's generic code for itself.

mod devices;
mod encoder;
mod mesh;
mod placement;
mod replicas;
mod scaling;
mod sharded;
mod steps;
mod strategies;
mod zero;
