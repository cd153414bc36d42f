"""The export that docs/aws-billing.md tells to create is one that AWS's own model accepts and InferLedger can read."""

import json
import re
from pathlib import Path

import botocore.session
import pytest
from botocore.validate import ParamValidator

from demo.cur_schema import SCHEMA

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "aws-export"
PAGE = ROOT / "docs" / "aws-billing.md"
EXPORT = json.loads((EXAMPLE / "export.json").read_text())
QUERY = EXPORT["DataQuery"]["QueryStatement"]
PROPERTIES = EXPORT["DataQuery"]["TableConfigurations"]["COST_AND_USAGE_REPORT"]
# Arguments of aws_bcmdataexports_export that its documentation calls required.
TERRAFORM = """data_query query_statement table_configurations destination_configurations s3_destination s3_bucket
    s3_prefix s3_region s3_output_configurations output_type format compression overwrite refresh_cadence frequency"""


def test_aws_accepts_the_export():
    shape = botocore.session.get_session().get_service_model("bcm-data-exports").operation_model("CreateExport")
    report = ParamValidator().validate({"Export": EXPORT}, shape.input_shape)
    assert not report.has_errors(), report.generate_report()


def test_the_query_names_every_column_of_cur_2_once():
    columns = re.fullmatch(r"SELECT (.+) FROM COST_AND_USAGE_REPORT", QUERY)[1].split(", ")
    assert columns == SCHEMA.names
    assert len(QUERY) <= 36_000, "AWS takes no longer query"


def test_the_page_shows_the_policies_that_the_example_holds():
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    assert shown == [json.loads((EXAMPLE / "read-policy.json").read_text())]


def test_what_is_read_lies_where_the_export_is_delivered():
    destination = EXPORT["DestinationConfigurations"]["S3Destination"]
    delivered = f"{destination['S3Bucket']}/{destination['S3Prefix']}/{EXPORT['Name']}"
    listed, read = json.loads((EXAMPLE / "read-policy.json").read_text())["Statement"]
    assert read["Resource"] == f"arn:aws:s3:::{delivered}/*"
    assert f"{destination['S3Bucket']}/{listed['Condition']['StringLike']['s3:prefix']}" == f"{delivered}/*"
    assert f"location: s3://{delivered}}}" in PAGE.read_text()


def test_data_exports_may_write_for_one_account_only():
    (statement,) = json.loads((EXAMPLE / "bucket-policy.json").read_text())["Statement"]
    account = statement["Condition"]["StringLike"]["aws:SourceAccount"]
    assert f":{account}:export/" in statement["Condition"]["StringLike"]["aws:SourceArn"]
    assert "bcm-data-exports.amazonaws.com" in statement["Principal"]["Service"]


@pytest.mark.parametrize("argument", TERRAFORM.split())
def test_the_terraform_file_sets_every_argument_that_is_required(argument):
    assert re.search(rf"^\s*{argument}\s*(=|\{{)", (EXAMPLE / "main.tf").read_text(), re.MULTILINE)


def test_the_terraform_file_takes_what_is_exported_from_the_same_file():
    text = (EXAMPLE / "main.tf").read_text()
    assert text.count("{") == text.count("}")
    assert text.count("(") == text.count(")")
    for path in re.findall(r"local\.export\.([\w.]+)", text):
        value = EXPORT
        for part in path.split("."):
            value = value[part]
        assert value


def test_every_column_and_option_that_the_page_names_exists():
    text = PAGE.read_text()
    prefixes = r"`((?:bill|line_item|pricing|product|reservation|savings_plan|split_line_item|resource)_\w+)`"
    assert set(re.findall(prefixes, text)) <= set(SCHEMA.names)
    assert set(re.findall(r"`(INCLUDE_\w+)`", text)) == {name for name in PROPERTIES if name.startswith("INCLUDE")}
    asked = re.search(r"--table-properties (\S+)", text)[1]
    assert dict(each.split("=") for each in asked.split(",")) == PROPERTIES
