//! Devices are shown as a table, also a single one.

use stratoscope_strategy::device::table::COLUMNS;
use stratoscope_strategy::{DeviceInfo, LogicalDevice};
use stratoscope_wire::MimeBundle;

use super::{IntoBundle, Table};

fn table(rows: impl Iterator<Item = [String; 5]>) -> MimeBundle {
    let table = Table::new(COLUMNS);
    rows.fold(table, |table, row| table.row(row)).bundle()
}

impl IntoBundle for DeviceInfo {
    fn bundle(&self) -> MimeBundle {
        table([self.row()].into_iter())
    }

    fn bundle_of_list(items: &[Self]) -> MimeBundle {
        table(items.iter().map(Self::row))
    }
}

impl IntoBundle for LogicalDevice {
    fn bundle(&self) -> MimeBundle {
        table([self.row()].into_iter())
    }

    fn bundle_of_list(items: &[Self]) -> MimeBundle {
        table(items.iter().map(Self::row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_one_table() {
        let bundle = stratoscope_strategy::devices().bundle();
        let text = bundle["text/plain"].as_str().unwrap_or_default();
        assert!(text.starts_with("name"), "{text}");
        assert!(
            text.contains("cpu:0") && text.contains("flex") && text.contains("physical"),
            "{text}"
        );
        assert!(
            !text.contains("DeviceInfo") && !text.contains('['),
            "{text}"
        );
        let html = bundle["text/html"].as_str().unwrap_or_default();
        assert_eq!(html.matches("<table").count(), 1, "{html}");
    }
}
