// Parses logs of other tools, by the importer that recognises them and by every importer, and lists
// their keys.
#include "sim/base/fuzz_target.h"
#include "validate/importers/importers.h"
#include "validate/importers/log_ledger.h"

FUZZ_TARGET(importers, text) {
  using namespace lambcast;
  using namespace lambcast::validate;
  const auto feed = [&](const auto& importer, const ImportHints& hints) {
    may_refuse([&] {
      for (const Measurement& measurement : importer(text, "log", hints)) {
        bool sound = measurement.ranks >= 1 && !measurement.rows.empty();
        for (const Row& row : measurement.rows)
          sound = sound && row.size.value() > 0 && row.time.ps() > 0;
        if (!sound) throw std::logic_error("an unsound table");
      }
    });
  };
  log_ledger(text);
  feed(import_measurements, {});
  for (const Importer& importer : importers())
    feed(importer.read, {.operation = Operation::all_reduce, .ranks = 8, .nodes = {}});
}
