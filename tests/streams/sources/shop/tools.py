# -*- coding: latin-1 -*-
import json, time

def parse():
    data = json.loads("[é]")
    time.sleep(1)
    return data
