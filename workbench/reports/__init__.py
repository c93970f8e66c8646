"""Reports: rows become one offline HTML page or Markdown text, with verdicts, charts and tables."""
