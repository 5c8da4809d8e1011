#!/usr/bin/env python3
"""Draws a page as a picture, in the light theme: those that README.md shows.

usage: picture.py PAGE PICTURE.png
       picture.py '#STATE' PICTURE.png DTSIM      the page of 'dtsim app'
"""
import os
import subprocess
import sys

from browser import Browser


def report(path, picture):
    browser = Browser()
    browser.dark(False)
    browser.open(os.path.abspath(path))
    browser.wait("const one = document.getElementById('timeline'); return !one || one.dataset.ms")
    browser.run("const part = document.getElementById('breakdown'); if (part) part.open = false")
    browser.wait("return document.getElementById('breakdown')?.open !== true")
    browser.driver.save_screenshot(picture)
    browser.close()


def app(state, picture, dtsim):
    process = subprocess.Popen([dtsim, "app", "--no-open", "--state", state], stdout=subprocess.PIPE, encoding="utf-8")
    browser = Browser("MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    browser.dark(False)
    browser.driver.get(process.stdout.readline().strip())
    browser.wait("return document.getElementById('timeline')?.dataset.ms", 60)
    browser.run("document.querySelectorAll('#breakdown table').forEach(one => { one.hidden = true; })")
    browser.driver.save_screenshot(picture)
    browser.close()
    process.terminate()


if sys.argv[1].startswith("#"):
    app(*sys.argv[1:4])
else:
    report(*sys.argv[1:3])
