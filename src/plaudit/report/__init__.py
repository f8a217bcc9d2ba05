"""Reports as one HTML file with SVG charts: what audits and trainings show.

document  facts, tables and charts as data
html      a report as a page;  svg: its charts
measure   shares with intervals, rank correlation
"""
