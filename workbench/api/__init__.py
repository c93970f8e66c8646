"""The functions and classes that `import workbench as wb` offers; each is thin over the package that does the work."""
