"""Bills in every format in which AWS exports them, and a small bill that has a line of every shape.

The writers (`export`) take a bill as a table with the columns of CUR 2.0 (`demo.cur_schema.SCHEMA`), so that one bill
can be written as CUR 2.0, legacy CUR and FOCUS. Everything here is written from how AWS bills
(documentation, public production SQL); what is only believed is marked `assumption:`.
"""
