"""What people look at after a run: report.html, junit.xml, summary.md, and all of it as JSON.

    collect    the files of a run         -> one plain document (`espbench-report/1`)
    page       the document               -> report.html, one file without network
    junit      the document               -> junit.xml
    markdown   the document               -> summary.md

The document is small whatever the run was: `thinning` keeps what a chart can show.
"""
