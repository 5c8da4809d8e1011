#!/usr/bin/env python3
"""Draws a page as a picture, in the light theme: the one that README.md shows.

usage: picture.py PAGE PICTURE.png
"""
import os
import sys

from browser import Browser

browser = Browser()
browser.dark(False)
browser.open(os.path.abspath(sys.argv[1]))
browser.wait("const one = document.getElementById('timeline'); return !one || one.dataset.ms")
browser.run("const part = document.getElementById('breakdown'); if (part) part.open = false")
browser.wait("return document.getElementById('breakdown')?.open !== true")
browser.driver.save_screenshot(sys.argv[2])
browser.close()
