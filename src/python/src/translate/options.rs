//! `tf.data.Options`: of all that it holds, how a data set is divided over workers.

use super::thing::{Pipeline, Thing};
use super::{Translator, Why};
use crate::model::{Call, Kind, Value};

/// The attribute of `options.experimental_distribute`, and of `options` itself in later versions.
pub(crate) const POLICY: &str = "auto_shard_policy";

impl Translator<'_> {
    /// `options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA`. It becomes a part of
    /// the data set that gets the options.
    pub(crate) fn set_auto_shard(&mut self, object: &Value, value: &Value) -> Result<(), Why> {
        let options = match &object.kind {
            Kind::Attribute(options, _) => options,
            _ => object,
        };
        let name = options.name().map(str::to_owned);
        let is_known = |name: &String| matches!(self.things.get(name), Some(Thing::Options(_)));
        let name = name
            .filter(is_known)
            .ok_or("it is no `tf.data.Options` of this cell")?;
        self.keeps_outside(&name)?;
        let full = self.names.full(value).unwrap_or_default();
        let policy = match full.rsplit_once("AutoShardPolicy.").map(|it| it.1) {
            Some("AUTO") => "Auto",
            Some("DATA") => "Data",
            Some("OFF") => "Off",
            Some("FILE") => "File",
            _ => return Err("its policy has no counterpart here".to_owned()),
        };
        self.things.insert(name, Thing::Options(Some(policy)));
        Ok(())
    }

    /// `data.with_options(options)`.
    pub(crate) fn with_options(&self, call: &Call, data: &mut Pipeline) {
        let options = call.argument("options", 0).and_then(Value::name);
        let options = options.and_then(|name| self.things.get(name));
        if let Some(Thing::Options(Some(policy))) = options {
            data.rust = format!("{}.auto_shard(AutoShardPolicy::{policy})", data.rust);
        }
    }
}
