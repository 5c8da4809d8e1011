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
browser.wait("return document.getElementById('timeline').dataset.ms")
browser.run("document.getElementById('breakdown').open = false")
browser.wait("return document.getElementById('breakdown').offsetHeight < 100")
browser.driver.save_screenshot(sys.argv[2])
browser.close()
