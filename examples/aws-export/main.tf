# The bucket, who may write to it, and the export. `terraform apply -var bucket=my-billing-bucket`, in the payer account.
# What is exported stands in export.json, which the AWS CLI takes as it is.

terraform {
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.81"
    }
  }
}

variable "bucket" {
  type        = string
  description = "name of the bucket; it is made here"
}

variable "prefix" {
  type    = string
  default = "exports"
}

provider "aws" {
  region = "us-east-1" # Data Exports is there and nowhere else
}

data "aws_caller_identity" "payer" {}
data "aws_partition" "current" {}

locals {
  export = jsondecode(file("${path.module}/export.json"))
  table  = "COST_AND_USAGE_REPORT"
  output = local.export.DestinationConfigurations.S3Destination.S3OutputConfigurations
}

resource "aws_s3_bucket" "bill" {
  bucket = var.bucket
}

resource "aws_s3_bucket_public_access_block" "bill" {
  bucket                  = aws_s3_bucket.bill.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_policy" "bill" {
  bucket = aws_s3_bucket.bill.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "DataExportsWrites"
      Effect    = "Allow"
      Principal = { Service = ["bcm-data-exports.amazonaws.com", "billingreports.amazonaws.com"] }
      Action    = ["s3:PutObject", "s3:GetBucketPolicy"]
      Resource  = [aws_s3_bucket.bill.arn, "${aws_s3_bucket.bill.arn}/*"]
      Condition = {
        StringLike = {
          "aws:SourceAccount" = data.aws_caller_identity.payer.account_id
          "aws:SourceArn"     = "arn:${data.aws_partition.current.partition}:bcm-data-exports:us-east-1:${data.aws_caller_identity.payer.account_id}:export/*"
        }
      }
    }]
  })
}

resource "aws_bcmdataexports_export" "bill" {
  depends_on = [aws_s3_bucket_policy.bill] # AWS tries to write when the export is made

  export {
    name = local.export.Name
    data_query {
      query_statement = local.export.DataQuery.QueryStatement
      # Terraform wants every property of the table named, and the billing view with them.
      table_configurations = {
        (local.table) = merge(local.export.DataQuery.TableConfigurations[local.table], {
          BILLING_VIEW_ARN = "arn:${data.aws_partition.current.partition}:billing::${data.aws_caller_identity.payer.account_id}:billingview/primary"
        })
      }
    }
    destination_configurations {
      s3_destination {
        s3_bucket = aws_s3_bucket.bill.bucket
        s3_prefix = var.prefix
        s3_region = aws_s3_bucket.bill.region
        s3_output_configurations {
          output_type = local.output.OutputType
          format      = local.output.Format
          compression = local.output.Compression
          overwrite   = local.output.Overwrite
        }
      }
    }
    refresh_cadence {
      frequency = local.export.RefreshCadence.Frequency
    }
  }
}

output "location" {
  description = "what `location` of the source is"
  value       = "s3://${aws_s3_bucket.bill.bucket}/${var.prefix}/${local.export.Name}"
}
