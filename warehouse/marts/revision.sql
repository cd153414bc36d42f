-- Figures that were published and then changed.
-- inputs: ledger_revision
SELECT
    'all' AS partition, NULL AS partition_team,
    manifest, previous, day, currency, team, provider, model, kind, basis, effective_nano_before, effective_nano_after
FROM ledger_revision
